"""The catalogue of faults: what each does, how often it comes, and what it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from tenure.chaos.faults import clocks, networks, processes, servers
from tenure.chaos.field import Field

Strike = Callable[[Field, Random], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Kind:
    strike: Strike
    weight: float
    about: str
    of_processes: bool = False
    """Comes in a lull as well."""

    @property
    def name(self) -> str:
        return self.strike.__name__


KINDS = {
    kind.name: kind
    for kind in (
        Kind(processes.kill_child, 5, "kill -9 of a process that runs handlers", of_processes=True),
        Kind(processes.kill_supervisor, 1.5, "kill -9 of a supervisor", of_processes=True),
        Kind(processes.kill_worker, 1.5, "kill -9 of a supervisor and its children at once", of_processes=True),
        Kind(processes.kill_leader, 1.5, "kill -9 of the worker that leads", of_processes=True),
        Kind(processes.stop_child, 3, "SIGSTOP of a process that runs handlers, 1.2 to 3 leases", of_processes=True),
        Kind(processes.stop_supervisor, 2, "SIGSTOP of a supervisor, 1.2 to 3 leases", of_processes=True),
        Kind(servers.end_sessions, 30, "pg_terminate_backend of one to three sessions"),
        Kind(networks.lose_answer, 36, "a connection broken around a commit: before, during, or with the answer lost"),
        Kind(networks.cut, 10, "all connections through a wire cut"),
        Kind(networks.silence, 1, "a wire that passes nothing on and tells nobody, up to 2 leases"),
        Kind(networks.slow, 2, "a wire with 200 ms each way"),
        Kind(networks.kill_pooler, 2, "kill -9 of PgBouncer"),
        Kind(servers.server_stop, 1.2, "an immediate stop of PostgreSQL"),
        Kind(servers.server_kill, 0.6, "kill -9 of the postmaster"),
        Kind(servers.lock_jobs, 2, "a lock on the table of live jobs"),
        Kind(servers.hold_snapshot, 1.5, "a transaction that stays open with an old snapshot"),
        Kind(servers.crowd, 0.7, "300 idle connections"),
        Kind(servers.disk_full, 1, "the disk of the live jobs full"),
        Kind(clocks.move_clock, 0.7, "a worker whose clock is wrong: an hour off, ten seconds back, twice as fast"),
    )
}


def missing(field: Field, name: str) -> str | None:
    """Why a kind cannot come here."""
    if name in {"server_stop", "server_kill"} and field.server is None:
        return "the server is not ours to stop"
    if name == "kill_pooler" and field.pooler is None:
        return "PgBouncer is not installed"
    if name == "disk_full" and field.disk is None:
        return "needs root, Linux and a server of our own, to mount a small disk"
    if name == "move_clock" and clocks.faketime() is None:
        return "libfaketime is not installed"
    return None
