"""The machine that the figures belong to."""

from __future__ import annotations

import os
import platform
import statistics
import time
from dataclasses import dataclass

import psycopg

from benchmarks.server import Server

COMMITS = 100


@dataclass(frozen=True)
class Machine:
    cores: int
    load: float
    """Of the last minute, before we began: others at work make every figure worse."""
    python: str
    postgresql: str
    fsync: str
    commit_ms: float
    """Median time of one small commit."""

    def __str__(self) -> str:
        return (
            f"{self.cores} cores, load {self.load:.1f} before the start, Python {self.python}, PostgreSQL {self.postgresql}, "
            f"fsync {self.fsync}, one commit {self.commit_ms:.2f} ms"
        )


def survey(server: Server) -> Machine:
    return Machine(
        cores=os.cpu_count() or 0,
        load=os.getloadavg()[0],
        python=platform.python_version(),
        postgresql=server.admin.one("show server_version").split()[0],
        fsync=server.admin.one("show fsync"),
        commit_ms=_commit_ms(server),
    )


def _commit_ms(server: Server) -> float:
    took = []
    with server.database() as dsn, psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as connection:
        connection.execute("create table commits (n integer)")
        for n in range(COMMITS):
            began = time.perf_counter()
            connection.execute("insert into commits values (%s)", [n])
            took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)
