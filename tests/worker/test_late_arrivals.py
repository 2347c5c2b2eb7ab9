"""Jobs that appear below a worker's cursor, on a real database: each is found in its time, and none by walking over the dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from psycopg import sql

from tenure import Tenure
from tenure.store.claim_replies import JobPosition
from tenure.store.link import Link
from tenure.store.statements import statement
from tenure.worker.claim import cursors as rules
from tenure.worker.claim.claimer import Claimer, ClaimScope, ClaimsUnderWay
from tenure.worker.claim.known_limits import KnownLimits
from tenure.worker.claim.refused_jobs import RefusedJobs
from tests.store.database import Database, claim_query
from tests.store.locks import meanwhile, waits_for_a_lock
from tests.store.paused_inserts import paused_inserts
from tests.waiting import until

BEFORE_A_FULL_SWEEP = rules.FULL_SWEEP_EVERY - 10  # which would find what the others miss


@pytest.fixture
async def claimer(app: Tenure, database_target, database: Database) -> AsyncIterator[Claimer]:
    """A worker's claimer with a lease, without the worker."""

    @app.job
    async def work(n: int = 0) -> None: ...

    link = Link(database_target, "claim", hot=True, durable=False)
    worker = database.worker()
    known_limits = KnownLimits(link, app.kinds, ["default"], worker, lambda _: None)
    yield Claimer(
        link,
        app.kinds,
        ClaimScope(queues=["default"]),
        worker,
        known_limits=known_limits,
        under_way=ClaimsUnderWay(lambda _: None, lambda: None),
        refused=RefusedJobs(),
    )
    await link.close()


async def ids(claimer: Claimer, limit: int = 10) -> list[str]:
    return [run.job_id for run in await claimer.claim(limit)]


async def test_a_late_commit_is_found_by_a_busy_worker_long_before_its_full_sweep(app, database, other):
    @app.job
    async def work(n: int = 0) -> None:
        await asyncio.sleep(0)

    database.enqueue({})
    async with app.running(concurrency=4):
        await until(lambda: database.sql("select count(*) from tenure.history"), is_=[(1,)])
        with other.connection.transaction():
            [late] = other.enqueue({"input": {"n": -1}})
            await app.enqueue_many(work.call(n) for n in range(100))
            await until(lambda: database.sql("select count(*) from tenure.history"), is_=[(101,)])
            busy = asyncio.create_task(keep_enqueuing(work))
        try:
            await until(
                lambda: database.sql("select 1 from tenure.history where id = %s", late), within=rules.FULL_SWEEP_EVERY / 2
            )
        finally:
            busy.cancel()
    await app.close()


async def keep_enqueuing(job: Any) -> None:
    while True:
        await job.enqueue()
        await asyncio.sleep(0.005)


async def test_all_jobs_of_a_late_commit_are_found_without_waiting_for_a_full_sweep(claimer, database, other):
    with other.connection.transaction():
        late = other.enqueue(*({} for _ in range(50)))
        database.enqueue({}, {}, {})
        assert len(await ids(claimer)) == 3
        assert await ids(claimer) == []
    found: list[str] = []

    async def look() -> bool:
        found.extend(await ids(claimer))
        return sorted(found) == sorted(late)

    await until(look, within=BEFORE_A_FULL_SWEEP)


async def test_a_late_first_job_of_a_new_database_is_found(claimer, database, other):
    """Before its first use a sequence returns 1, which is not yet the position of a job."""
    for _ in range(3):
        assert await ids(claimer) == []
    with other.connection.transaction():
        [late] = other.enqueue({})
        [soon] = database.enqueue({})
        assert await ids(claimer) == [soon]
    await until(lambda: ids(claimer), is_=[late], within=BEFORE_A_FULL_SWEEP)


async def test_a_job_that_has_its_place_but_is_not_written_yet_is_found(claimer, database, other, monkeypatch):
    monkeypatch.setattr(rules, "SWEEP_SHARE", 0)  # with every claim, however slow the machine
    with paused_inserts(database):
        entering = meanwhile(lambda: other.enqueue({"meta": {"late": True}}))
        await waits_for_a_lock(database)
        for _ in range(10):
            database.enqueue({})
            await ids(claimer)
        database.sql("select pg_advisory_unlock(1)")
        late = entering()
    await until(lambda: ids(claimer), is_=late, within=BEFORE_A_FULL_SWEEP)


async def test_the_floor_waits_for_a_transaction_that_began_during_a_claim(database, other):
    """The claim has its number already, the other takes the next one and a position, the claim reads the position. The next
    snapshot then ends at that other number: `xmax` is one past the latest that ended, not the next to be given."""
    worker = database.worker()
    cursors = rules.Cursors(["default"])

    def sweep() -> None:
        plan = cursors.plan(0.0)
        claim = database.claim(worker, lanes=lanes_of(plan))
        places = [JobPosition(job["queue"], job["priority"], job["position"]) for job in claim.jobs]
        cursors.learn(replace(plan, sweep=True), places, 10, claim.reply, now=0.0, took=0.0)

    database.enqueue({})
    sweep()
    with other.connection.transaction():
        with database.connection.transaction():
            database.sql("select pg_current_xact_id()")
            [late] = other.enqueue({})
            sweep()
        [(position,)] = other.sql("select position from tenure.jobs where id = %s", late)
        for _ in range(3):
            sweep()
            assert cursors._floor.position <= position


async def test_returned_jobs_below_the_cursor_are_found(claimer, database):
    """Also when a sweep would not reach them: it begins at the floor, which has passed them."""
    other = database.worker()
    early = database.enqueue({}, {})
    [*_, last] = database.claim(other).jobs
    later = database.enqueue({}, {})
    assert await ids(claimer) == later

    async def passed() -> bool:
        assert await ids(claimer) == []
        return claimer._cursors._floor.position > last["position"]

    await until(passed)
    database.condemn(other)
    database.return_jobs()
    heard, found = await ids(claimer), await ids(claimer)  # the first of them hears of it, if it does not find them
    assert sorted(heard + found) == sorted(early)


async def test_new_priorities_are_noticed_at_once(claimer, database):
    for priority in (50, 0, 100, 51, 49, 50):
        [job_id] = database.enqueue({"priority": priority})
        assert await ids(claimer) == [job_id]


async def test_jobs_of_a_claim_that_was_rolled_back_are_found_by_the_full_sweep(claimer, database, other, monkeypatch):
    monkeypatch.setattr(rules, "FULL_SWEEP_EVERY", 0.3)
    early = database.enqueue({})
    with other.connection.transaction(force_rollback=True):
        other.claim(other.worker())
        [later] = database.enqueue({})
        assert await ids(claimer) == [later]
        assert await ids(claimer) == []
    await until(lambda: ids(claimer), is_=early, within=20)


async def test_a_resumed_queue_is_read_from_its_old_cursor(claimer, database):
    first = database.enqueue({}, {})
    assert sorted(await ids(claimer)) == sorted(first)
    database.sql("insert into tenure.queues (name, paused_at) values ('default', now())")
    paused = database.enqueue({}, {})
    for _ in range(3):
        assert await ids(claimer) == []
    database.sql("update tenure.queues set paused_at = null")
    assert sorted(await ids(claimer)) == sorted(paused)


def test_behind_an_old_snapshot_a_claim_from_the_cursor_does_not_walk_over_what_is_gone(database, other):
    worker = database.worker()
    cursors = rules.Cursors(["default"])
    with other.connection.transaction():
        other.sql("set transaction isolation level repeatable read")
        other.sql("select count(*) from tenure.jobs")
        go_through(database, worker, cursors, 500, now=0.0)
        early = buffers(database, worker, lanes_of(cursors.plan(2.5)))
        go_through(database, worker, cursors, 5000, now=3.0)
        from_cursor = buffers(database, worker, lanes_of(cursors.plan(5.5)))
        by_a_sweep = buffers(database, worker, lanes_of(cursors.plan(6.0)))
        from_start = buffers(database, worker, [{"queue": "default", "high": 100, "low": 0, "start": 0}])
    assert from_cursor <= early + 10
    assert by_a_sweep <= early + 10
    assert from_start > 5 * max(from_cursor, by_a_sweep)


def go_through(database: Database, worker: str, cursors: rules.Cursors, count: int, *, now: float) -> None:
    """This many jobs are enqueued and finished, with a sweep at each of the next two seconds, and ten more are pending."""
    database.enqueue(*({} for _ in range(count)))
    for moment in (*(now for _ in range(count // 1000 + 1)), now + 1.0, now + 1.0, now + 2.0):
        plan = cursors.plan(moment)
        claim = database.claim(worker, limit=1000, lanes=lanes_of(plan))
        places = sorted(JobPosition(job["queue"], job["priority"], job["position"]) for job in claim.jobs)
        # Transactions of other databases on the server count as open ones; here they have all ended.
        cursors.learn(plan, places, 1000, replace(claim.reply, xmin=claim.reply.xid), now=moment, took=0.0)
    assert claim.jobs == []
    database.sql("delete from tenure.jobs")
    database.enqueue(*({} for _ in range(10)))


def lanes_of(plan: rules.Plan) -> list[dict[str, Any]]:
    return [{"queue": lane.queue, "high": lane.high, "low": lane.low, "start": lane.start} for lane in plan.lanes]


def buffers(database: Database, worker: str, lanes: list[dict[str, Any]]) -> int:
    """The pages that picking ten jobs touches; the claim itself is taken back."""
    query = claim_query(worker, worker, lanes=lanes)
    text = sql.SQL("explain (analyze, buffers, format json) " + statement(query.name, "tenure"))
    with database.connection.transaction(force_rollback=True):
        [[[told]]] = database.connection.execute(text, query.values).fetchall()
    return find(told["Plan"], "CTE picked")


def find(node: dict[str, Any], name: str) -> int:
    if node.get("Subplan Name") == name:
        return int(node["Shared Hit Blocks"] + node["Shared Read Blocks"])
    return max((find(inner, name) for inner in node.get("Plans", ())), default=0)


async def test_kinds_that_are_not_registered_here_are_named_once(claimer, database, caplog):
    database.enqueue({"kind": "strange"}, {"kind": "strange"})
    assert await ids(claimer) == []
    claimer._next_survey = 0.0
    assert await ids(claimer) == []
    assert [(record.queue, record.kind) for record in caplog.records if hasattr(record, "kind")] == [("default", "strange")]
