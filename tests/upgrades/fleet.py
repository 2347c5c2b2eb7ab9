"""Workers and clients of two versions of the code on one database."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from tests.processes import WorkerProcess, worker_process
from tests.store.database import Database
from tests.upgrades.code_version import CodeVersion
from tests.waiting import until

NEW_KINDS = ("starts_chain", "flow")
"""Those of `jobs_for_upgrades.py` that earlier code may not have."""

ENDED = "select state, count(*) from tenure.all_jobs where id = any(%s::uuid[]) group by 1"


class Fleet:
    """Workers and clients of both versions on one database."""

    def __init__(self, folder: Path, dsn: str, old: CodeVersion, new: CodeVersion) -> None:
        self._folder, self._dsn, self._old, self._new = folder, dsn, old, new
        self._stack = ExitStack()
        self.database = self._stack.enter_context(Database(dsn))
        self.workers: list[WorkerProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    async def start_worker(self, name: str, *, old: bool) -> WorkerProcess:
        worker = self._stack.enter_context(
            worker_process(self._folder, self._dsn, "--name", name, env=self._code(old).environment)
        )
        self.workers.append(worker)
        await until(lambda: "ready: " in worker.said or worker.process.poll() is not None, within=60)
        assert worker.process.poll() is None, worker.said
        return worker

    async def start_client(self, name: str, *, old: bool) -> EnqueuingClient:
        client = self._stack.enter_context(enqueuing(self._folder, name, self._dsn, env=self._code(old).environment))
        await until(lambda: client.ids, within=60)
        return client

    def _code(self, old: bool) -> CodeVersion:
        return self._old if old else self._new

    async def work(self, *clients: EnqueuingClient, jobs: int = 60) -> None:
        """Until that many more jobs of each of these clients have been accepted and completed."""
        for client in clients:
            known = set(client.ids)
            await until(lambda client=client, known=known: self._completed(client, known) >= jobs, within=120)

    def _completed(self, client: EnqueuingClient, known: set[str]) -> int:
        return dict(self.database.sql(ENDED, [one for one in client.ids if one not in known])).get("completed", 0)

    async def until_it_works(self, name: str, jobs: int = 10) -> None:
        """Until the worker has completed some jobs."""
        mine = "select count(*) from tenure.history h join tenure.workers w on w.id = h.worker_id where w.name like %s"
        await until(lambda: self.database.sql(mine, f"{name}%")[0][0] >= jobs, within=60)

    def ended(self, ids: list[str]) -> dict[str, int]:
        return dict(self.database.sql(ENDED, ids))


class EnqueuingClient:
    def __init__(self, folder: Path, name: str, dsn: str, env: dict[str, str]) -> None:
        self._folder, self._name = folder, name
        self._process = subprocess.Popen(
            [sys.executable, "client.py", name],
            cwd=folder,
            env={**os.environ, "TENURE_DSN": dsn, **env},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def ids(self) -> list[str]:
        """Of accepted jobs."""
        file = self._folder / f"{self._name}.ids"
        assert self._process.poll() is None or self._process.returncode == 0, self._process.communicate()[1]
        return (
            [line.strip() for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")] if file.exists() else []
        )

    def stop(self) -> None:
        (self._folder / f"{self._name}.stop").touch()
        _, said = self._process.communicate(timeout=60)
        assert (self._process.returncode, said) == (0, "")

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


@contextmanager
def enqueuing(folder: Path, name: str, dsn: str, env: dict[str, str]) -> Iterator[EnqueuingClient]:
    client = EnqueuingClient(folder, name, dsn, env)
    try:
        yield client
    finally:
        client.kill()


async def stop(worker: WorkerProcess) -> None:
    """As an orchestrator does: its jobs end, and the process with them."""
    worker.terminate()
    await until(lambda: worker.process.poll() is not None, within=60)
    assert worker.process.returncode == 0, worker.said


def complaints(worker: WorkerProcess) -> list[str]:
    """Lines that an operator would have to look at. Not: the job that fails as planned, and settings of this test's server."""
    lines = [line for line in worker.said.splitlines() if "WARNING" in line or "ERROR" in line or "CRITICAL" in line]
    return [line for line in lines if "fails_once" not in line and "doctor" not in line and not _is_of_new_kind(line)]


def _is_of_new_kind(line: str) -> bool:
    """An old worker reports kinds that only the new code has, if their jobs are still pending when it looks."""
    return "which this worker does not know" in line and "worker=old-" in line and any(f"'{kind}'" in line for kind in NEW_KINDS)
