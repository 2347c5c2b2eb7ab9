"""Every statement that a term guards, with something for it to do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from tenure.model.ids import uuid7
from tenure.model.ticks import PlannedTick, ScheduleMove
from tenure.store import blockers, cleaning, events, history, jobs, leases, schedules, stats, workers
from tenure.store.leases import Term
from tenure.store.query import Query
from tests.leader.plans import at, plan
from tests.store.database import Database
from tests.store.forged_jobs import change_state

Ask = Callable[[Database, Term], Query]


def _record(database: Database, term: Term) -> Query:
    [(version,)] = database.sql("select version::text from tenure.schedules where name = 'due'")
    tick = PlannedTick(planned_at=at(60), job_id=uuid7())
    move = ScheduleMove(name="due", version=version, since=at(60), next_at=at(120), ticks=[tick])
    return schedules.record_ticks(term, [move])


WRITES: dict[str, Ask] = {
    "jobs/promote_jobs": lambda _, term: jobs.promote(term, limit=10),
    "jobs/cancel_expired": lambda _, term: jobs.cancel_expired(term, limit=10),
    "workers/condemn_workers": lambda _, term: workers.condemn_expired(term, reap=True),
    "workers/condemn_unknown": lambda _, term: workers.condemn_unknown(term),
    "jobs/expire_jobs": lambda _, term: jobs.expire(term, limit=10, max_crashes=3),
    "history/drop_history": lambda _, term: history.drop(term, keep=0.0),
    "history/make_history": lambda _, term: history.make(term, days_ahead=9),
    "history/clean_history": lambda _, term: history.clean(term, limit=10, keep=60.0),
    "history/clean_default": lambda _, term: history.clean_default(term, limit=10, keep=60.0),
    "cleaning/merge_tallies": lambda _, term: cleaning.merge_tallies(term, limit=10),
    "cleaning/clean_keys": lambda _, term: cleaning.clean_keys(term, limit=10),
    "cleaning/clean_blocked": lambda _, term: cleaning.clean_blocked(term, limit=10),
    "cleaning/clean_endings": lambda _, term: cleaning.clean_endings(term, limit=10),
    "blockers/arm_blockers": lambda _, term: blockers.arm(term, limit=10),
    "blockers/resolve_endings": lambda _, term: blockers.resolve(term, limit=10),
    "blockers/unblock_jobs": lambda _, term: blockers.unblock(term, limit=10),
    "blockers/end_blocked": lambda _, term: blockers.end_blocked(term, limit=10),
    "cleaning/clean_progress": lambda _, term: cleaning.clean_progress(term, limit=10, keep=60.0),
    "cleaning/clean_audit": lambda _, term: cleaning.clean_audit(term, limit=10, keep=60.0),
    "cleaning/clean_logs": lambda _, term: cleaning.clean_logs(term, limit=10, keep=60.0),
    "cleaning/clean_incidents": lambda _, term: cleaning.clean_incidents(term, limit=10, keep=60.0),
    "cleaning/clean_watches": lambda _, term: cleaning.clean_watches(term, limit=10),
    "cleaning/clean_counters": lambda _, term: cleaning.clean_counters(term, limit=10, keep=60.0),
    "cleaning/clean_minutes": lambda _, term: cleaning.clean_minutes(term, limit=10),
    "cleaning/clean_fleet_minutes": lambda _, term: cleaning.clean_fleet_minutes(term, limit=10),
    "stats/record_fleet": lambda _, term: stats.record_fleet(term, 10),
    "cleaning/clean_latencies": lambda _, term: cleaning.clean_latencies(term, limit=10, keep=60.0),
    "cleaning/clean_steps": lambda _, term: cleaning.clean_steps(term, limit=10, keep=60.0),
    "cleaning/clean_events": lambda _, term: cleaning.clean_events(term, limit=10, keep=60.0),
    "cleaning/clean_waits": lambda _, term: cleaning.clean_waits(term, limit=10),
    "events/number_events": lambda _, term: events.number(term, limit=10),
    "events/wake_waiting": lambda _, term: events.wake(term, limit=10),
    "cleaning/clean_dead": lambda _, term: cleaning.clean_dead(term, limit=10, keep=60.0),
    "schedules/record_ticks": _record,
    "schedules/release_ticks": lambda _, term: schedules.release_ticks(term, limit=10),
    "schedules/clean_ticks": lambda _, term: schedules.clean_ticks(term, limit=10, keep=60.0),
    "leases/follow_clock": lambda _, term: leases.follow_clock(term),
    "schedules/rewind_schedules": lambda _, term: schedules.rewind(term),
    "schedules/retire_schedules": lambda _, term: schedules.retire(term),
}
"""By the file of the statement."""

LOOKS: dict[str, Ask] = {
    "blockers/find_resolver_work": lambda _, term: blockers.find_resolver_work(term),
    "leases/check_lease": lambda _, term: leases.check(term),
    "schedules/find_due": lambda _, term: schedules.find_due(term, limit=10),
}
"""They write nothing, but return what may be acted on."""


def lay_out_work(database: Database) -> None:
    """Something to do for every one of them."""
    _jobs(database)
    _counts(database)
    _traces(database)
    _workflows(database)
    _history(database)
    _schedules(database)
    _waiting_jobs(database)


def _waiting_jobs(database: Database) -> None:
    """One whose blocker is not armed, one whose blocker has ended, one that can run, one to end; and rows that no job needs."""
    blocker, *waiting = [str(uuid4()) for _ in range(5)]
    database.enqueue({"id": blocker, "delay": 60}, *({"id": job, "after": [blocker]} for job in waiting))
    database.sql("update tenure.blockers set armed = true where job_id <> %s", waiting[0])
    database.sql("insert into tenure.chain_endings (chain_id, state) values (%s, 'completed')", blocker)
    database.sql("update tenure.blocked set missing = 0 where job_id = any (%s::uuid[])", waiting[2:])
    database.sql("update tenure.blocked set error = 'it waits for itself' where job_id = %s", waiting[3])
    database.sql("insert into tenure.blocked (job_id, total, missing) values (gen_random_uuid(), 1, 1)")
    database.sql(
        "insert into tenure.chain_endings (chain_id, state, resolved, ended_at)"
        " values (gen_random_uuid(), 'completed', true, now() - interval '2 hours')"
    )


def _jobs(database: Database) -> None:
    """One to promote, one of a dead worker with its own lease over, one held by a worker without a row, a dead letter, and a
    worker that was last seen in the future."""
    database.enqueue({"delay": 60})
    database.sql("update tenure.jobs set run_at = now() - interval '1 minute'")
    worker = database.worker(ttl=600)
    database.enqueue({})
    database.claim(worker, leases={"work": 0})
    database.enqueue({"expires": 0, "queue": "expired"})
    database.sql("update tenure.workers set expires_at = now() - interval '1 minute'")
    early = database.worker()
    database.sql("update tenure.workers set heartbeat_at = now() + interval '1 hour' where id = %s", early)
    lost = database.worker()
    database.enqueue({})
    database.claim(lost)
    database.sql("delete from tenure.workers where id = %s", lost)
    [dead] = database.enqueue({})
    change_state(database.sql, "dead_letter", dead, started_at=datetime.now(UTC) - timedelta(hours=1))


def _counts(database: Database) -> None:
    database.sql("insert into tenure.tallies (queue, kind, what, jobs) values ('q', 'k', 'completed', 1)")
    database.sql(
        "insert into tenure.counters (hour, queue, kind, what, jobs) values (now() - interval '1 day', 'q', 'k', 'failed', 1)"
    )
    database.sql("insert into tenure.minutes values (now() - interval '2 days', 'q', 'k', 'failed', 1)")
    old = ("2 days", 1, 10, 0, 0, 0.0, None, "[]", "[]")
    database.sql("insert into tenure.fleet_minutes values (now() - %s::interval, %s, %s, %s, %s, %s, %s, %s, %s)", *old)
    database.sql("insert into tenure.latencies values (now() - interval '2 days', 'minute', 'q', 'k', 'ran', 5, 1)")
    database.sql("insert into tenure.watches values (gen_random_uuid(), now() - interval '1 hour')")
    database.sql(
        "insert into tenure.audit (at, request_id, phase, actor, source, action)"
        " values (now() - interval '400 days', gen_random_uuid(), 'requested', 'ann', 'api', 'cancel_job')"
    )


def _traces(database: Database) -> None:
    """Of a job that is gone, and its key."""
    job = str(uuid4())
    ago = "now() - interval '1 hour'"
    database.sql(f"insert into tenure.progress (job_id, fence, percent, began_at) values (%s, 1, 5, {ago})", job)
    database.sql(f"insert into tenure.logs values (%s, 1, 1, 1, {ago}, '[]')", job)
    database.sql(f"insert into tenure.incidents (job_id, what, at) values (%s, 'failed', {ago})", job)
    database.sql(
        "insert into tenure.keys (kind, key, job_id, scope, expires_at, digest) values ('k', 'over', %s, 'window', now(), '')",
        job,
    )


def _workflows(database: Database) -> None:
    """One that waits for an event that was sent and is not placed yet, and what is left of one that is gone."""
    [waiting] = database.enqueue({})
    database.sql("update tenure.jobs set state = 'waiting', position = -2, fence = 1 where id = %s", waiting)
    database.sql("insert into tenure.events (name, at) values ('paid', now() - interval '1 hour')")
    database.sql("insert into tenure.waits (job_id, step, event, key, fence) values (%s, 'paid', 'paid', '', 1)", waiting)
    gone = "01900000-0000-7000-8000-000000000000"
    database.sql("insert into tenure.waits (job_id, step, event, key, fence) values (%s, 'never', 'never', '', 1)", gone)
    database.sql(
        "insert into tenure.steps (job_id, name, number, what, state, fence) values (%s, 'a', 1, 'step', 'done', 1)", gone
    )


def _history(database: Database) -> None:
    database.sql("insert into tenure.retentions values ('brief', '1 minute')")
    database.sql(
        "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state, kind,"
        " queue, input)"
        " select gen_random_uuid(), 1, now(), now() - age, 1, 1, 50, 0, 'completed', 'brief', 'q', '{}'"
        " from unnest('{1 hour, 400 days}'::interval[]) as age"
    )


def _schedules(database: Database) -> None:
    """One whose time has come (by a clock that is years ahead), one with a line that may move on, a tick that nobody needs any
    more, and one that no code declares any more."""
    plan(database, "due")
    plan(database, "line", overlap="queue")
    database.sql("insert into tenure.ticks (schedule, planned_at, outcome) values ('line', %s, 'queued')", at(60))
    database.sql(
        "insert into tenure.ticks (schedule, planned_at, outcome, recorded_at)"
        " values ('gone', %s, 'skipped', now() - interval '1 hour')",
        at(60),
    )
    plan(database, "orphan")
    database.sql("update tenure.schedules set owner = 'shop:app' where name = 'orphan'")
    database.run(schedules.declare_app(str(uuid4()), "shop:app", kinds=[], schedules=[]))


def everything(database: Database) -> dict[str, list[Any]]:
    """All that is kept, and which partitions there are."""
    tables = [
        name
        for (name,) in database.sql(
            "select relname from pg_class where relnamespace = 'tenure'::regnamespace and relkind in ('r', 'p')"
        )
    ]
    kept = {table: sorted(database.sql(f"select t::text from tenure.{table} t")) for table in tables}
    assert {"jobs", "leases", "ticks", "history"} <= kept.keys()
    return kept
