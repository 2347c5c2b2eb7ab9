"""(y) What chains, blockers, groups and workflows cost a job that uses none of them: a drain, beside that of a copy without them.

The copy is made here: its settling statement looks for no chain that ends, and its leader has no resolver. Both builds drain in
turns, so that noise affects both. CPU per job is the steadier figure of the two.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import drain
from benchmarks.drain import Drain
from benchmarks.server import Server
from benchmarks.workers import ROOT, Worker

EDITS = {
    "store/sql/fragments/job_endings.sql": (
        """ended_chains as (
    insert into tenure.chain_endings (chain_id, job_id, kind, state)
    select e.chain, e.id, e.kind, e.ending from ended e where e.chain is not null
    on conflict (chain_id) do update
       set job_id = excluded.job_id, kind = excluded.kind, state = excluded.state, ended_at = excluded.ended_at,
           output = null, error = null, resolved = false
    returning job_id as id),""",
        "ended_chains as (select null::uuid as id where false),",
    ),
    "store/sql/jobs/finish_jobs.sql": (
        "case when s.dependants then coalesce(s.chain_id, s.id) end as chain",
        "null::uuid as chain",
    ),
    "leader/duties/registry.py": ("    Resolver.name: lambda given: Resolver(given.reporting),\n", ""),
}
"""By file: what is replaced by what."""


@dataclass(frozen=True, slots=True)
class Cost:
    rate: float
    """Jobs a second."""
    server_cpu: float | None
    """Microseconds per job."""
    worker_cpu: float

    @classmethod
    def of(cls, drains: list[Drain]) -> Cost:
        jobs = sum(one.jobs for one in drains)
        used = [one.server_cpu for one in drains if one.server_cpu is not None]
        return cls(
            rate=jobs / sum(one.seconds for one in drains),
            server_cpu=sum(used) / jobs * 1e6 if len(used) == len(drains) else None,
            worker_cpu=sum(one.worker_cpu for one in drains) / jobs * 1e6,
        )


def measure(server: Server, count: int, concurrency: int) -> tuple[Cost, Cost]:
    """With everything, and without."""
    with copy_without_flow() as copy:
        turns = [None, copy, copy, None]
        drains = [_drain(server, count, concurrency, package) for package in turns]
    ours = [one for one, package in zip(drains, turns, strict=True) if package is None]
    without = [one for one, package in zip(drains, turns, strict=True) if package is not None]
    return Cost.of(ours), Cost.of(without)


@contextmanager
def copy_without_flow() -> Iterator[Path]:
    """The folder that holds the package."""
    with tempfile.TemporaryDirectory(prefix="tenure-without-flow-") as folder:
        package = Path(folder) / "tenure"
        shutil.copytree(ROOT / "src" / "tenure", package, ignore=shutil.ignore_patterns("__pycache__"))
        for name, (old, new) in EDITS.items():
            text = (package / name).read_text("utf-8")
            if text.count(old) != 1:
                raise RuntimeError(f"{name} has changed: this benchmark does not know what belongs to flow there")
            (package / name).write_text(text.replace(old, new), "utf-8")
        yield Path(folder)


def _drain(server: Server, count: int, concurrency: int, package: Path | None) -> Drain:
    with server.database() as dsn, Worker(dsn, concurrency=concurrency, package=package) as worker:
        return drain.measure(server, dsn, worker, count)
