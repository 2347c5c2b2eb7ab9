"""The catalogue of faults: what each does, how often it comes, and what it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from tenure.chaos.faults import clocks, leases, limits, networks, notifications, processes, rows, servers, settings, tables
from tenure.chaos.field import Field, Struck

Strike = Callable[[Field, Random], Awaitable[str | Struck]]


@dataclass(frozen=True, slots=True)
class Kind:
    strike: Strike
    weight: float
    about: str
    in_lulls: bool = False
    """Comes in a lull as well: it breaks no connection, so that what it must not hold up can be seen."""
    heal: Callable[[Field], Awaitable[None]] | None = None
    """Undoes what may be left of it when the campaign ends."""

    @property
    def name(self) -> str:
        return self.strike.__name__


KINDS = {
    kind.name: kind
    for kind in (
        Kind(processes.kill_child, 5, "kill -9 of a process that runs handlers", in_lulls=True),
        Kind(processes.kill_supervisor, 1.5, "kill -9 of a supervisor", in_lulls=True),
        Kind(processes.kill_worker, 1.5, "kill -9 of a supervisor and its children at once", in_lulls=True),
        Kind(processes.stop_worker, 1.5, "SIGTERM of a supervisor, which has its grace", in_lulls=True),
        Kind(processes.kill_leader, 1.5, "kill -9 of the worker that leads", in_lulls=True),
        Kind(processes.stop_child, 3, "SIGSTOP of a process that runs handlers, 1.2 to 3 leases", in_lulls=True),
        Kind(processes.stop_supervisor, 2, "SIGSTOP of a supervisor, 1.2 to 3 leases", in_lulls=True),
        Kind(leases.condemn_worker, 3, "a live worker is condemned while its jobs send heartbeats", in_lulls=True),
        Kind(leases.stop_at_lease_end, 3, "SIGSTOP of a process until the leases of its jobs end", in_lulls=True),
        Kind(servers.end_sessions, 30, "pg_terminate_backend of one to three sessions"),
        Kind(networks.lose_answer, 36, "a connection broken around a commit: before, during, or with the answer lost"),
        Kind(networks.cut, 10, "all connections through a wire cut"),
        Kind(networks.silence, 1, "a wire that passes nothing on and tells nobody, up to 2 leases"),
        Kind(networks.slow, 2, "a wire with 200 ms each way"),
        Kind(networks.kill_pooler, 2, "kill -9 of PgBouncer"),
        Kind(servers.server_stop, 1.2, "an immediate stop of PostgreSQL"),
        Kind(servers.server_kill, 0.6, "kill -9 of the postmaster"),
        Kind(tables.lock_jobs, 2, "a lock on the table of live jobs, up to 20 s"),
        Kind(tables.lock_core, 2, "a lock on another table that every job needs, up to 20 s"),
        Kind(tables.lock_aside, 3, "a lock on a table that no job needs, up to 20 s: jobs and promotion go on", in_lulls=True),
        Kind(tables.lose_partition, 1, "today has no partition of history, and its rows are in the default one"),
        Kind(
            rows.refuse_rows,
            4,
            "rows of some jobs are refused by a trigger with any SQLSTATE",
            in_lulls=True,
            heal=rows.accept_rows,
        ),
        Kind(rows.lock_rows, 3, "a transaction keeps the rows of some running jobs locked", in_lulls=True),
        Kind(limits.change_limits, 6, "limits are set, changed and removed", in_lulls=True, heal=limits.remove_limits),
        Kind(notifications.fill_notify, 2, "the NOTIFY queue is full", in_lulls=True, heal=notifications.empty_queue),
        Kind(
            settings.hostile_settings,
            1.2,
            "unusual settings of the database or role, for all new sessions",
            heal=settings.usual_settings,
        ),
        Kind(servers.read_history, 1, "reports that read history again and again", in_lulls=True),
        Kind(servers.hold_snapshot, 1.5, "a transaction that stays open with an old snapshot"),
        Kind(servers.crowd, 0.7, "300 idle connections"),
        Kind(servers.disk_full, 1, "the disk of the live jobs full"),
        Kind(clocks.move_clock, 0.7, "a worker whose clock is wrong: an hour off, ten seconds back, twice as fast"),
    )
}


def missing(field: Field, name: str) -> str | None:
    """Why a kind cannot come here."""
    server = field.server
    needs = {
        "server_stop": (server is not None, "the server is not ours to stop"),
        "server_kill": (server is not None, "the server is not ours to stop"),
        "fill_notify": (
            server is not None and int(server.status().version or 0) >= notifications.SINCE,
            f"needs an embedded PostgreSQL {notifications.SINCE}, whose NOTIFY queue can be made small",
        ),
        "kill_pooler": (field.pooler is not None, "PgBouncer is not installed"),
        "disk_full": (field.disk is not None, "needs root, Linux and a server of our own, to mount a small disk"),
        "move_clock": (clocks.faketime() is not None, "libfaketime is not installed"),
    }
    possible, why = needs.get(name, (True, ""))
    return None if possible else why
