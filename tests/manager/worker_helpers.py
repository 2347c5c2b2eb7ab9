"""What the tests of real workers share: a log of the runs of their jobs, a queue to give them work, and looks at processes."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.processes import WorkerProcess
from tests.waiting import PATIENCE, until

Sql = Callable[..., list[tuple[Any, ...]]]
SHORT_LEASE = {"TENURE_WORKERS_LEASE_TIMEOUT_SECONDS": "3"}


class RunLog:
    """What the jobs wrote, line by line."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, folder / "run_log"

    def entries(self, event: str = "start", **wanted: Any) -> list[dict[str, Any]]:
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        found = [json.loads(line) for line in lines]
        return [e for e in found if e["event"] == event and all(e[name] == value for name, value in wanted.items())]

    def runs(self, *ids: str) -> list[int]:
        """How often each of these jobs was started."""
        started = [entry["job"] for entry in self.entries()]
        return [started.count(job) for job in ids]

    def release(self, name: str = "release") -> None:
        (self._folder / name).touch()


class Queue:
    """Enqueues jobs without the client, and reads their state."""

    def __init__(self, sql: Sql, dsn: str) -> None:
        self.sql, self.dsn = sql, dsn

    def add(self, kind: str, count: int = 1, *, queue: str = "default", **input_: Any) -> list[str]:
        job = {"kind": kind, "queue": queue, "input": input_}
        if kind == "needs_gpu":
            job["capability"] = "gpu"
        ids = [str(row[0]) for row in self.sql("select id from tenure.enqueue(%s)", json.dumps([job] * count))]
        self.sql("select pg_notify('tenure', %s)", f"jobs {queue}")
        return ids

    def of(self, job: str, *columns: str) -> tuple[Any, ...]:
        rows = self.sql(f"select {', '.join(columns)} from tenure.all_jobs where id = %s", job)
        assert len(rows) == 1, f"job {job} is in {len(rows)} tables"
        return rows[0]

    def states(self, *ids: str) -> dict[str, int]:
        return dict(self.sql("select state, count(*) from tenure.all_jobs where id = any(%s::uuid[]) group by 1", list(ids)))

    async def completed(self, *ids: str, within: float = PATIENCE) -> None:
        """Each of them, and each recorded once."""
        await until(lambda: self.states(*ids), is_={"completed": len(ids)}, within=within)

    def worker_pids(self) -> list[int]:
        return [row[0] for row in self.sql("select pid from tenure.workers where died_at is null order by pid")]


async def serving(worker: WorkerProcess, processes: int = 1) -> list[int]:
    """Waits until it takes jobs, and gives the pids of its children."""
    await until(lambda: worker.said.count("ready: ") >= processes)
    return worker.children()


async def ended(*pids: int, within: float) -> None:
    await until(lambda: not any(alive(pid) for pid in pids), within=within)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def handles_sigterm(pid: int) -> bool:
    [caught] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt:")]
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
