"""The kinds of faults: what each does, how often it is injected, and what it needs."""

from __future__ import annotations

from tenure.chaos.faults import clocks, leases, limits, networks, notifications, processes, servers, settings, tables
from tenure.chaos.faults.base import FaultKind
from tenure.chaos.testbed import NOTIFY_PAGES_SINCE, Testbed

KINDS = {
    kind.name: kind
    for kind in (
        FaultKind(processes.kill_child, 5, "kill -9 of a process that runs handlers", in_lulls=True),
        FaultKind(processes.kill_supervisor, 1.5, "kill -9 of a supervisor", in_lulls=True),
        FaultKind(processes.kill_worker, 1.5, "kill -9 of a supervisor and its children at once", in_lulls=True),
        FaultKind(processes.stop_worker, 1.5, "SIGTERM of a supervisor, which shuts down in its grace period", in_lulls=True),
        FaultKind(processes.kill_leader, 1.5, "kill -9 of the worker that leads", in_lulls=True),
        FaultKind(processes.kill_web, 1.5, "kill -9 of the web server", in_lulls=True),
        FaultKind(processes.stop_child, 3, "SIGSTOP of a process that runs handlers, 1.2 to 3 leases", in_lulls=True),
        FaultKind(processes.stop_supervisor, 2, "SIGSTOP of a supervisor, 1.2 to 3 leases", in_lulls=True),
        FaultKind(leases.condemn_worker, 3, "a live worker is condemned while its jobs send heartbeats", in_lulls=True),
        FaultKind(leases.stop_at_lease_end, 3, "SIGSTOP of a process until the leases of its jobs end", in_lulls=True),
        FaultKind(servers.end_sessions, 30, "pg_terminate_backend of one to three sessions"),
        FaultKind(networks.lose_answer, 36, "a connection broken around a commit: before, during, or with the answer lost"),
        FaultKind(networks.cut, 10, "all connections through a proxy cut"),
        FaultKind(networks.silence, 1, "a proxy that forwards nothing and closes nothing, up to 2 leases"),
        FaultKind(networks.slow, 2, "a proxy with 200 ms each way"),
        FaultKind(networks.kill_pooler, 2, "kill -9 of PgBouncer", heal=networks.start_pooler),
        FaultKind(servers.server_stop, 1.2, "an immediate stop of PostgreSQL"),
        FaultKind(servers.server_kill, 0.6, "kill -9 of the postmaster"),
        FaultKind(tables.lock_jobs, 2, "a lock on the table of live jobs, up to 20 s"),
        FaultKind(tables.lock_core, 2, "a lock on another table that jobs or workflows need, up to 20 s"),
        FaultKind(
            tables.lock_aside, 3, "a lock on a table that no job needs, up to 20 s: jobs and promotion continue", in_lulls=True
        ),
        FaultKind(tables.lose_partition, 1, "today has no partition of history, and its rows are in the default one"),
        FaultKind(
            tables.refuse_rows,
            4,
            "rows of some jobs are refused by a trigger with any SQLSTATE",
            in_lulls=True,
            heal=tables.accept_rows,
        ),
        FaultKind(tables.lock_rows, 3, "a transaction locks some running jobs, or the first under a limit", in_lulls=True),
        FaultKind(limits.change_limits, 6, "limits are set, changed and removed", in_lulls=True, heal=limits.remove_limits),
        FaultKind(notifications.fill_notify, 2, "the NOTIFY queue is full", in_lulls=True, heal=notifications.empty_queue),
        FaultKind(
            settings.hostile_settings,
            1.2,
            "unusual settings of the database or role, for all new sessions",
            heal=settings.usual_settings,
        ),
        FaultKind(servers.read_history, 1, "reports that read history repeatedly", in_lulls=True),
        FaultKind(servers.hold_snapshot, 1.5, "a transaction that stays open with an old snapshot"),
        FaultKind(servers.crowd, 0.7, "300 idle connections"),
        FaultKind(servers.disk_full, 1, "the disk of the live jobs is full"),
        FaultKind(clocks.move_clock, 0.7, "a worker whose clock is wrong: an hour off, ten seconds back, twice as fast"),
    )
}


def why_unavailable(testbed: Testbed, name: str) -> str | None:
    """Why a kind of fault is not possible here; None: it is."""
    server = testbed.server
    needs = {
        "server_stop": (server is not None, "the server is not embedded, so it is not stopped"),
        "server_kill": (server is not None, "the server is not embedded, so it is not stopped"),
        "fill_notify": (
            server is not None and int(server.status().version or 0) >= NOTIFY_PAGES_SINCE,
            f"needs an embedded PostgreSQL {NOTIFY_PAGES_SINCE}, whose NOTIFY queue can be made small",
        ),
        "kill_web": (testbed.workers.web is not None, "what the web server needs is not installed (tenure[web])"),
        "kill_pooler": (testbed.pooler is not None, "PgBouncer is not installed"),
        "disk_full": (testbed.disk is not None, "needs root, Linux and an embedded server, to mount a small disk"),
        "move_clock": (clocks.faketime() is not None, "libfaketime is not installed"),
    }
    possible, why = needs.get(name, (True, ""))
    return None if possible else why
