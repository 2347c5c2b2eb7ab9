"""Lives made by the product's own statements, and what their reports say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest

import tenure
from tenure.client.report.gather import MAX_CHILDREN, MAX_INCIDENTS, MAX_LINES, MAX_STEPS, gather
from tenure.client.report.life import Report
from tenure.store import jobs, reports
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget
from tests.store.database import Claim, Database
from tests.store.plans import MODES, plan

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    boom()\nValueError: boom\n'


@pytest.fixture
def told(database: Database) -> Callable[[str], object]:
    """Asks by one statement only."""

    async def ask(job_id: str) -> Report | None:
        asked = []

        async def fetch(query):
            asked.append(query)
            return database.fetch(query)

        found = await gather(fetch, UUID(job_id))
        assert len(asked) == 1
        return found

    return ask


def run(database: Database, worker: str, **outcome) -> Claim:
    """One run of the only job that is ready, ended by a move."""
    claim = database.claim(worker)
    assert len(database.run(jobs.move(claim.outcomes(**outcome)))) == 1
    return claim


def make_due(database: Database) -> None:
    database.sql("update tenure.jobs set run_at = clock_timestamp() where state in ('retry', 'scheduled')")
    term = database.term("stager")
    database.run(jobs.promote(term, limit=10))
    database.end_term("stager")


def note(database: Database, claim: Claim, *lines, first: int = 1, **more) -> None:
    told = {"first": first, "last": first + len(lines) - 1, "lines": list(lines)} if lines else {}
    database.run(jobs.write_updates(claim.outcomes(**told, **more), 200))


def line(number: int, message: str, **more):
    return {"n": number, "at": f"2026-07-27T10:00:{number % 60:02}+00:00", "level": "info", "message": message, **more}


async def test_there_is_no_report_of_a_job_that_does_not_exist(told):
    assert await told(str(uuid4())) is None


async def test_a_job_that_has_not_started(database, told):
    [job_id] = database.enqueue({"input": {"n": 1}, "by": "shop", "meta": {"trace": "t1"}})
    report = await told(job_id)
    assert (report.job.id, report.job.input, report.job.meta) == (UUID(job_id), {"n": 1}, {"trace": "t1"})
    assert (report.attempts, report.log, report.children, report.progress) == ([], [], [], None)
    assert [moment.text for moment in report.events] == ["enqueued by shop"]
    assert report.at >= report.job.enqueued_at


async def test_two_failed_attempts_and_a_success(database, told):
    worker = database.worker()
    [job_id] = database.enqueue({})
    run(database, worker, state="retry", what="failed", delay=0, error=TRACEBACK)
    make_due(database)
    run(database, worker, state="retry", what="timed_out", delay=0, error="TimeoutError: too slow")
    make_due(database)
    database.run(jobs.finish(database.claim(worker).finished(output={"ok": True})))
    report = await told(job_id)
    assert [(a.number, a.fence, a.outcome) for a in report.attempts] == [
        (1, 1, "failed"),
        (2, 2, "timed_out"),
        (3, 3, "completed"),
    ]
    assert [a.error for a in report.attempts] == [TRACEBACK, "TimeoutError: too slow", None]
    assert {(a.worker, a.worker_id) for a in report.attempts} == {("here:1", UUID(worker))}
    assert all(a.waited is not None and a.ran is not None for a in report.attempts)
    assert [moment.what for moment in report.events] == [
        "enqueued",
        "started",
        "failed",
        "started",
        "timed_out",
        "started",
        "completed",
    ]
    assert report.events == sorted(report.events, key=lambda moment: moment.at)
    assert report.untold == 0
    assert report.totals.lived >= report.totals.waited + report.totals.ran


async def test_a_running_job(database, told):
    worker = database.worker()
    [job_id] = database.enqueue({})
    database.claim(worker)
    report = await told(job_id)
    assert [(a.outcome, a.worker, a.ended_at) for a in report.attempts] == [("running", "here:1", None)]


async def test_a_snooze_and_a_crash_of_its_worker(database, told):
    first, second = database.worker(), database.worker()
    [job_id] = database.enqueue({})
    run(database, first, state="scheduled", what="snoozed", delay=0, refund=1)
    make_due(database)
    database.claim(first)
    database.condemn(first)
    database.return_jobs()
    database.run(jobs.finish(database.claim(second).finished()))
    report = await told(job_id)
    assert [(a.number, a.fence, a.outcome) for a in report.attempts] == [
        (1, 1, "snoozed"),
        (1, 2, "crashed"),
        (1, 3, "completed"),
    ]
    # The dead worker's row is gone: its name was stored with the crash.
    assert [a.worker for a in report.attempts] == [None, "here:1", "here:1"]
    assert report.attempts[1].worker_id == UUID(first)
    assert report.job.crashes == 1


async def test_a_lost_lease_that_made_a_dead_letter(database, told):
    worker = database.worker()
    [job_id] = database.enqueue({})
    database.claim(worker)
    database.sql("update tenure.jobs set crashes = 2")
    database.condemn(worker, "expired")
    database.return_jobs()
    report = await told(job_id)
    assert report.job.state == "dead_letter"
    assert [(a.outcome, a.error) for a in report.attempts] == [
        ("lease_lost", "quarantined: its worker died 3 times while running it")
    ]
    assert [moment.what for moment in report.events] == ["enqueued", "started", "lease_lost", "dead_letter"]


async def test_canceled_by_hand_before_it_ran(database, told):
    [job_id] = database.enqueue({"delay": 60})
    database.sql(
        """with gone as (delete from tenure.jobs where id = %s returning *),
           noted as (insert into tenure.incidents (job_id, what, by, error) select id, 'canceled', 'ada', 'not needed' from gone)
           insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state, kind,
                  queue, input)
           select id, fence, enqueued_at, clock_timestamp(), attempt, max_attempts, priority, crashes, 'canceled', kind,
                  queue, input
             from gone""",
        job_id,
    )
    report = await told(job_id)
    assert report.attempts == []
    assert [(i.what, i.by, i.reason) for i in report.incidents] == [("canceled", "ada", "not needed")]
    assert report.events[-1].text == "canceled by ada: not needed"


async def test_a_job_whose_earlier_incidents_are_cleaned_away(database, told):
    worker = database.worker()
    [job_id] = database.enqueue({"max_attempts": 9})
    for _ in range(3):
        run(database, worker, state="retry", what="failed", delay=0, error="boom")
        make_due(database)
    database.sql("delete from tenure.incidents where fence < 3")
    report = await told(job_id)
    assert [(a.fence, a.waited) for a in report.attempts] == [(3, None)]
    assert report.untold == 2
    database.sql("delete from tenure.incidents")
    report = await told(job_id)
    assert [(a.fence, a.outcome) for a in report.attempts] == [(3, "unknown")]
    assert report.job.error == "boom"


async def test_progress_and_the_log_of_all_runs(database, told):
    worker = database.worker()
    [job_id] = database.enqueue({})
    first = database.claim(worker)
    note(database, first, line(1, "one"), line(2, "two", fields={"rows": 3}), percent=40, message="well on")
    database.run(jobs.move(first.outcomes(state="retry", what="failed", delay=0, error="boom")))
    make_due(database)
    second = database.claim(worker)
    note(database, second, line(1, "three", level="warning"))
    note(database, second, line(2, "four"), first=2)
    report = await told(job_id)
    assert [(said.message, said.level, said.fields, said.fence) for said in report.log] == [
        ("one", "info", {}, 1),
        ("two", "info", {"rows": 3}, 1),
        ("three", "warning", {}, 2),
        ("four", "info", {}, 2),
    ]
    assert report.log[0].at.isoformat() == "2026-07-27T10:00:01+00:00"
    assert (report.progress.percent, report.progress.message) == (40, "well on")


async def test_only_the_last_lines_are_reported(database, told):
    worker = database.worker()
    [job_id] = database.enqueue({})
    claim = database.claim(worker)
    for start in range(1, MAX_LINES + 50, 30):
        note(database, claim, *[line(n, f"line {n} " + "x" * 2000) for n in range(start, start + 30)], first=start)
    report = await told(job_id)
    last = database.sql("select max(last_line) from tenure.logs")[0][0]
    assert [said.message.split()[1] for said in report.log] == [str(n) for n in range(last - MAX_LINES + 1, last + 1)]


@pytest.mark.parametrize(
    "odd", [[], {}, "text", None, 7, {"message": 7, "level": None, "at": "yesterday", "fields": []}, {"at": 5}]
)
async def test_log_lines_of_any_shape_are_reported(database, told, odd):
    worker = database.worker()
    [job_id] = database.enqueue({})
    note(database, database.claim(worker), odd)
    report = await told(job_id)
    [said] = report.log
    assert (said.level, said.fields, said.at.tzinfo is not None) == ("info", {}, True)
    json.dumps(report.to_json(), allow_nan=False)


async def test_a_progress_that_is_not_a_number_is_none(database, told):
    [job_id] = database.enqueue({})
    database.sql("insert into tenure.progress (job_id, fence, percent) values (%s, 1, 'NaN')", job_id)
    assert (await told(job_id)).progress is None


async def test_children_live_and_finished_oldest_first(database, told):
    worker = database.worker()
    [job_id] = database.enqueue({"kind": "parent"})
    children = [database.enqueue({"parent": job_id})[0] for _ in range(3)]
    database.run(jobs.finish(database.claim(worker, limit=1).finished()))
    report = await told(job_id)
    state = dict.fromkeys(children, "pending") | {children[0]: "completed"}
    # By id, which is by time; within a millisecond it is by chance.
    told_of = [(str(child.id), child.kind, child.state) for child in report.children]
    assert told_of == [(child, "work", state[child]) for child in sorted(children)]
    assert not report.more_children
    assert (await told(children[0])).job.parent_id == UUID(job_id)


async def test_not_all_of_many_children_are_listed(database, told):
    [job_id] = database.enqueue({})
    database.enqueue(*[{"parent": job_id}] * (MAX_CHILDREN + 1))
    report = await told(job_id)
    assert (len(report.children), report.more_children) == (MAX_CHILDREN, True)


async def test_of_many_incidents_the_last_are_reported(database, told):
    worker = database.worker()
    [job_id] = database.enqueue({})
    many = MAX_INCIDENTS + 20
    database.sql(
        """insert into tenure.incidents (job_id, at, what, attempt, fence, worker_id, started_at)
           select %s, clock_timestamp() + n * interval '1 ms', 'snoozed', 1, n, %s, clock_timestamp()
             from generate_series(1, %s) n""",
        job_id,
        worker,
        many,
    )
    database.sql("update tenure.jobs set fence = %s, started_at = clock_timestamp()", many)
    report = await told(job_id)
    assert [a.fence for a in report.attempts] == list(range(21, many + 1))
    assert report.untold == 20


async def test_through_a_link_of_the_client_it_is_the_same(database, dsn, told):
    worker = database.worker()
    [job_id] = database.enqueue({"by": "shop"})
    claim = database.claim(worker)
    note(database, claim, line(1, "one"), percent=12.5)
    database.run(jobs.move(claim.outcomes(state="dead_letter", what="failed", error=TRACEBACK)))
    link = Link(DatabaseTarget.at(dsn), "client")
    try:
        by_link = await gather(link.fetch, UUID(job_id))
    finally:
        await link.close()
    mine, theirs = (await told(job_id)).to_json(), by_link.to_json()
    for report in (mine, theirs):
        del report["at"], report["totals"]
    assert mine == theirs
    assert by_link.to_text()
    assert by_link.to_html()


def test_it_begins_with_the_columns_of_find_job():
    folder = Path(tenure.__file__).parent / "store" / "sql"
    found = (folder / "jobs/find_job.sql").read_text("utf-8")
    columns = found[found.index("select ") : found.index("  from ")].strip()
    assert columns in (folder / "reports/find_report.sql").read_text("utf-8")


FILL = """
    insert into tenure.jobs (id, kind, state, position, parent_id)
    select md5('job ' || n)::uuid, 'work', 'pending', n, md5('parent ' || n % {parents})::uuid from generate_series(1, 30000) n;
    insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state, kind, queue,
           input, parent_id)
    select md5('done ' || n)::uuid, 1, now(), now() + n % 3 * interval '1 day', 1, 3, 50, 0, 'completed', 'work', 'default',
           '{{}}', md5('parent ' || n % {parents})::uuid
      from generate_series(1, 30000) n;
    insert into tenure.incidents (job_id, what, fence)
    select md5('job ' || n % {parents})::uuid, 'failed', n from generate_series(1, 30000) n;
    insert into tenure.logs (job_id, fence, first_line, last_line, lines)
    select md5('job ' || n % {parents})::uuid, n, 1, 1, '[]' from generate_series(1, 30000) n;
    insert into tenure.progress (job_id, fence, percent) select md5('job ' || n)::uuid, 1, 1 from generate_series(1, 30000) n;
"""
ANALYSE = "analyze tenure.jobs, tenure.history, tenure.incidents, tenure.logs, tenure.progress;"
STAGES = {
    "never analysed": FILL.format(parents=1000),
    "analysed while empty": ANALYSE + FILL.format(parents=1000),
    "analysed": FILL.format(parents=1000) + ANALYSE,
    "everything belongs to one job": FILL.format(parents=1) + ANALYSE,
}


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_nothing_that_grows_is_read_from_end_to_end(fresh_dsn, stage):
    query = reports.find(str(uuid4()), incidents=MAX_INCIDENTS, lines=MAX_LINES, children=MAX_CHILDREN, steps=MAX_STEPS)
    with Database(fresh_dsn) as database:
        database.connection.execute(STAGES[stage].encode(), prepare=False)
        full = {
            f"{name}"
            for (name,) in database.sql("select relname from pg_class where relkind = 'r' and pg_relation_size(oid) > 0")
        }
    for settings in (*MODES.values(), {"plan_cache_mode": "force_generic_plan"}):
        with Database(fresh_dsn, **settings) as database:
            nodes = plan(database, query)
        walked = {node.relation for node in nodes if node.from_end_to_end} & full - {"workers"}
        assert walked == set(), settings
        assert {"incidents_job", "logs_pkey", "jobs_parent", "jobs_pkey", "progress_pkey"} <= {node.index for node in nodes}
