"""What drills share: a server, workers at their defaults, and the lines that their handlers write."""

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

from tenure.chaos import work
from tenure.chaos.fleet import CLOCK, FOLDER, Worker
from tenure.chaos.ledger import HandlerLine, Ledger
from tenure.embedded import EmbeddedServer
from tenure.store.migrator import migrate
from tenure.store.place import Place

LOOK_EVERY = 0.02


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    goal: str
    measured: str
    met: bool


class Ground:
    def __init__(self, folder: Path, server: EmbeddedServer) -> None:
        self.folder = folder
        self.server = server
        self._workers: list[Worker] = []
        self._read: dict[Path, tuple[int, int]] = {}

    def worker(self, *options: str, **settings: str) -> Worker:
        """`settings` by the names of their variables."""
        environment = {
            "TENURE_LOG": "warning",
            FOLDER: str(self.folder),
            CLOCK: str(time.time() - time.monotonic()),
            **settings,
        }
        worker = Worker(f"worker-{len(self._workers) + 1}", "direct", self.server.dsn, self.folder, list(options), environment)
        self._workers.append(worker)
        worker.start()
        return worker

    def ready(self) -> int:
        """Processes that are there to run jobs."""
        [(count,)] = self.ask("select count(*) from tenure.workers where died_at is null and expires_at > clock_timestamp()")
        return int(count)

    def ask(self, statement: str) -> list[tuple[int, ...]]:
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            return connection.execute(statement).fetchall()

    def tell(self, statement: str) -> None:
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            connection.execute(statement)

    def runs(self) -> list[HandlerLine]:
        return list(Ledger(self.folder).runs())

    def lines(self) -> int:
        """How many lines handlers wrote so far; only what is new is read."""
        for path in self.folder.glob("runs-*.jsonl"):
            place, lines = self._read.get(path, (0, 0))
            with path.open("rb") as file:
                file.seek(place)
                new = file.read()
            self._read[path] = place + len(new), lines + new.count(b"\n")
        return sum(lines for _, lines in self._read.values())

    def clear(self) -> None:
        for worker in self._workers:
            worker.kill_all()


@asynccontextmanager
async def ground() -> AsyncIterator[Ground]:
    with _folder() as folder, EmbeddedServer(folder / "server") as server:
        await migrate(Place.at(server.dsn))
        work.app.configure(dsn=server.dsn)
        laid = Ground(folder, server)
        try:
            yield laid
        finally:
            laid.clear()
            await work.app.close()


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tenure-drill-", ignore_cleanup_errors=True) as name:
        # As root the server runs under another account, which must be able to pass.
        Path(name).chmod(0o711)
        yield Path(name)


async def until(look: Callable[[], bool], *, within: float) -> bool:
    deadline = time.monotonic() + within
    while not look():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(LOOK_EVERY)
    return True


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan
