"""The environment of a drill: a server, workers at default settings, and the lines that their handlers write."""

from __future__ import annotations

import asyncio
import math
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tenure.chaos import jobs
from tenure.chaos.ledger import HandlerLine, Ledger
from tenure.chaos.workers import APP, CLOCK, FOLDER, CampaignWorker, worker_command
from tenure.embedded import EmbeddedServer
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget

CHECK_EVERY = 0.02


@dataclass(frozen=True, slots=True)
class DrillResult:
    name: str
    goal: str
    measured: str
    met: bool


class DrillEnvironment:
    def __init__(self, folder: Path, server: EmbeddedServer) -> None:
        self.folder = folder
        self.server = server
        self._workers: list[CampaignWorker] = []
        self._read: dict[Path, tuple[int, int]] = {}

    def start_worker(self, *options: str, **settings: str) -> CampaignWorker:
        """Starts a worker. `settings`: environment variables."""
        environment = {
            "TENURE_LOG": "warning",
            FOLDER: str(self.folder),
            CLOCK: str(time.time() - time.monotonic()),
            **settings,
        }
        name = f"worker-{len(self._workers) + 1}"
        worker = CampaignWorker(name, self.server.dsn, self.folder, worker_command(APP, *options), environment)
        self._workers.append(worker)
        worker.start()
        return worker

    def ready_processes(self) -> int:
        """How many processes are ready to run jobs."""
        [(count,)] = self.fetch("select count(*) from tenure.workers where died_at is null and expires_at > clock_timestamp()")
        return int(count)

    def fetch(self, statement: str) -> list[tuple[int, ...]]:
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            return connection.execute(statement).fetchall()

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            connection.execute(statement)

    def runs(self) -> list[HandlerLine]:
        return list(Ledger(self.folder).runs())

    def count_lines(self) -> int:
        """How many lines handlers have written; reads only what is new."""
        for path in self.folder.glob("runs-*.jsonl"):
            offset, lines = self._read.get(path, (0, 0))
            with path.open("rb") as file:
                file.seek(offset)
                new = file.read()
            self._read[path] = offset + len(new), lines + new.count(b"\n")
        return sum(lines for _, lines in self._read.values())

    def kill_workers(self) -> None:
        for worker in self._workers:
            worker.kill_all()


@asynccontextmanager
async def open_environment() -> AsyncIterator[DrillEnvironment]:
    with _folder() as folder, EmbeddedServer(folder / "server") as server:
        await migrate(DatabaseTarget.at(server.dsn))
        jobs.app.configure(dsn=server.dsn)
        environment = DrillEnvironment(folder, server)
        try:
            yield environment
        finally:
            environment.kill_workers()
            await jobs.app.close()


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tenure-drill-", ignore_cleanup_errors=True) as name:
        # As root, the server runs under another account, which needs access to the folder.
        Path(name).chmod(0o711)
        yield Path(name)


async def until(condition: Callable[[], bool], *, within: float) -> bool:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(CHECK_EVERY)
    return True


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan
