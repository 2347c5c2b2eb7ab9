"""The rows of the table beside peers, and what Tenure is meant to reach."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.rows import Target


@dataclass(frozen=True)
class PeerRow:
    key: str
    title: str
    unit: str


@dataclass(frozen=True)
class Aim:
    """What Tenure's figure divided by the peer's should reach."""

    row: str
    peer: str
    target: Target


RATE, MS, BYTES, MICROS = "jobs/s", "ms", "bytes", "µs"

ROWS = (
    PeerRow("drain_1", "drain, one process", RATE),
    PeerRow("drain_2", "drain, two processes", RATE),
    PeerRow("bulk", "enqueue in bulk, into used tables", RATE),
    PeerRow("bulk_new", "enqueue in bulk, into new tables", RATE),
    PeerRow("single", "enqueue one by one", RATE),
    PeerRow("wakeup_p50", "wake-up of an idle worker, p50", MS),
    PeerRow("wakeup_p99", "wake-up of an idle worker, p99", MS),
    PeerRow("steady_p50", "enqueue to start at a steady rate, p50", MS),
    PeerRow("steady_p99", "enqueue to start at a steady rate, p99", MS),
    PeerRow("steady_transactions", "  transactions per job, with the enqueue", ""),
    PeerRow("steady_cpu", "  PostgreSQL CPU per job, with the enqueue", MICROS),
    PeerRow("drain_1_cpu", "PostgreSQL CPU per job, drain", MICROS),
    PeerRow("bulk_cpu", "PostgreSQL CPU per job, bulk enqueue", MICROS),
    PeerRow("drain_1_worker_cpu", "worker CPU per job, drain", MICROS),
    PeerRow("drain_1_wal", "WAL per job, drain", BYTES),
    PeerRow("bulk_wal", "WAL per job, bulk enqueue", BYTES),
)

AIMS = (
    Aim("drain_1", "pgqueuer", Target(at_least=2.5, of_ratio=True)),
    Aim("drain_2", "pgqueuer", Target(at_least=2.5, of_ratio=True)),
    Aim("drain_1", "bare", Target(at_least=0.65, of_ratio=True)),
    Aim("bulk", "pgqueuer", Target(at_least=1.6, of_ratio=True)),
    Aim("wakeup_p50", "bare", Target(at_most=1.5, of_ratio=True)),
)
