"""`Continue`: a job completes and creates the next link of its chain, together or not at all."""

from __future__ import annotations

import json
import os
from typing import Any
from uuid import uuid4

import pytest

from tenure import Cancel, ConfigError, Context, Continue, Fail, JobFailed, JobSettled, Retry, Tenure
from tenure.store import chains, claims, jobs
from tenure.store.jobs import FinishedRuns
from tests.chains import chain_jobs
from tests.store.database import Claim, Database
from tests.waiting import until


@pytest.fixture
def other_app(dsn: str) -> Tenure:
    """The app of `chain_jobs`, at the database of this test."""
    chain_jobs.app.configure(dsn=dsn)
    return chain_jobs.app


@pytest.mark.parametrize("job", chain_jobs.PLAIN, ids=lambda job: job.name)
async def test_the_result_of_a_chain_is_that_of_its_last_link_in_every_executor(other_app, database, job):
    async with other_app.running():
        handle = await job.enqueue(3)
        where, told = await handle.result("30s")
    assert told == "last 3"
    assert (where.split()[1] == str(os.getpid())) is not where.startswith("process")
    [first, second] = database.sql(
        "select id, kind, state, parent_id, chain_id, next_id, system from tenure.history order by enqueued_at"
    )
    assert first[1:5] == (job.name, "completed", None, None)
    assert second[1:6] == ("last", "completed", handle.id, handle.id, None)
    assert (first[0], first[5]) == (handle.id, second[0])
    assert second[6] == {"link": 2}
    await other_app.close()


@pytest.mark.parametrize("job", chain_jobs.TRANSACTIONS, ids=lambda job: job.name)
async def test_in_a_transaction_of_the_handler_its_writes_its_end_and_the_next_link_commit_together(other_app, database, job):
    database.sql("create table if not exists written (n int); truncate written")
    async with other_app.running():
        assert await (await job.enqueue(5)).result("30s") == ["transaction", "last 5"]
    assert database.sql("select n from written") == [(5,)]
    assert database.sql("select count(*) from tenure.incidents") == [(0,)]
    database.sql("drop table written")
    await other_app.close()


async def test_branch_and_loop_by_ordinary_code(app):
    @app.job
    async def collatz(n: int, steps: int = 0) -> int | Continue[int]:
        if n == 1:
            return steps
        if n % 2:
            return Continue(collatz, 3 * n + 1, steps + 1)
        return Continue(halve, n, steps)

    @app.job
    def halve(n: int, steps: int) -> Continue[int]:
        return Continue(collatz, n // 2, steps + 1)

    settled: list[str] = []
    app.events.subscribe((JobSettled,), lambda event: settled.append(event.what))
    async with app.running():
        assert await (await collatz.enqueue(6)).result("30s") == 8
    assert settled == ["continued"] * 14 + ["completed"]


async def test_a_failure_of_a_link_is_that_of_the_chain(app):
    @app.job(retry=Retry(max_attempts=1))
    async def breaks() -> None:
        raise RuntimeError("broken link")

    @app.job
    async def first() -> Continue[None]:
        return Continue(breaks)

    async with app.running():
        handle = await first.enqueue()
        with pytest.raises(JobFailed, match="broken link") as failed:
            await handle.result("30s")
    assert failed.value.job_id != handle.id
    assert (await handle.status()).state == "completed"


async def test_options_of_the_next_link_are_those_of_its_call(app, database):
    @app.job(key="n", queue="far", priority="low")
    async def later(n: int) -> None: ...

    @app.job
    async def first(ctx: Context) -> Continue[None]:
        return Continue(later.using(delay="1h", meta={"a": 1}, max_attempts=7), 1)

    async with app.running():
        handle = await first.using(auth={"user": 1}).enqueue()
        await until(lambda: database.sql("select count(*) from tenure.jobs where kind = 'later'") == [(1,)])
    [(state, queue, priority, meta, auth, attempts, key, chain)] = database.sql(
        "select state, queue, priority, meta, auth, max_attempts, key, chain_id from tenure.jobs"
    )
    assert (state, queue, priority, meta, auth, attempts) == ("scheduled", "far", 25, {"a": 1}, {"user": 1}, 7)
    assert (key, chain) == (None, handle.id)
    assert database.sql("select count(*) from tenure.keys") == [(0,)]


async def test_what_cannot_be_a_link_is_refused_with_the_way_out(app):
    @app.job
    async def work(n: int) -> None: ...

    with pytest.raises(ConfigError, match=r"not a job: use Continue\(job"):
        Continue(print, 1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="neither conn= nor key="):
        Continue(work.using(key="k"), 1)


def claimed(database: Database, **job: Any) -> tuple[str, Claim]:
    [job_id] = database.enqueue(job)
    return job_id, database.claim(database.worker())


def continuing(claim: Claim, **link: Any) -> FinishedRuns:
    outcomes = {job_id: [claim.id, {"kind": "next", "id": str(uuid4()), **link}] for job_id in claim.ids}
    return FinishedRuns("{" + ",".join(claim.ids) + "}", "{" + claim.id + "}", json.dumps(outcomes))


def test_a_run_that_lost_its_claim_neither_completes_nor_continues(database):
    job_id, claim = claimed(database)
    database.condemn(claim.worker_id)
    database.return_jobs()
    assert database.fetch(chains.continue_jobs(continuing(claim))) == []
    assert database.sql("select id::text, state from tenure.jobs") == [(job_id, "pending")]
    assert database.sql("select count(*) from tenure.history") == [(0,)]


def test_a_run_whose_job_another_claim_holds_continues_nothing_though_its_own_claim_still_holds_others(database):
    database.enqueue({}, {})
    claim = database.claim(database.worker())
    kept, returned = claim.ids
    database.run(jobs.move(json.dumps([{"id": returned, "claim_id": claim.id, "state": "pending", "refund": 1}])))
    successor = database.claim(database.worker())
    assert successor.ids == [returned]
    assert [row.id for row in database.fetch(chains.continue_jobs(continuing(claim)))] == [kept]
    assert database.sql("select claim_id::text from tenure.jobs where id = %s", returned) == [(successor.id,)]
    assert [row.id for row in database.fetch(chains.continue_jobs(continuing(successor)))] == [returned]


def test_a_repetition_after_a_lost_answer_adds_no_second_link(database):
    _, claim = claimed(database)
    runs = continuing(claim)
    assert len(database.fetch(chains.continue_jobs(runs))) == 1
    assert database.fetch(chains.continue_jobs(runs)) == []
    assert [str(job) for job in database.fetch(jobs.find_settled(claim.outcomes()))] == claim.ids
    assert database.sql("select count(*) from tenure.jobs") == [(1,)]
    assert [row.reason for row in database.fetch(claims.check(claim.outcomes()))] == ["already_completed"]


def test_many_chains_continue_in_one_statement_and_their_flags_go_along(database):
    ids = database.enqueue({}, {"dependants": True}, {})
    claim = database.claim(database.worker())
    assert sorted(row.id for row in database.fetch(chains.continue_jobs(continuing(claim)))) == sorted(ids)
    flags = database.sql("select chain_id::text, dependants from tenure.jobs")
    assert sorted(flags, key=str) == sorted(zip(ids, (None, True, None), strict=True), key=str)
    assert database.sql("select count(*) from tenure.chain_endings") == [(0,)]


def test_a_link_that_postgresql_refuses_leaves_its_predecessor_running(database):
    job_id, claim = claimed(database)
    with pytest.raises(Exception, match="kind is 300 bytes long"):
        database.fetch(chains.continue_jobs(continuing(claim, kind="k" * 300)))
    assert database.sql("select id::text, state from tenure.jobs") == [(job_id, "running")]


async def test_a_refused_link_fails_the_job_and_not_the_others_of_its_group(app, database):
    @app.job(retry=Retry(max_attempts=1))
    async def work(n: int) -> Continue[None]:
        return Continue(rest.using(queue="q" * 300 if n == 3 else "default"), n)

    @app.job
    async def rest(n: int) -> None: ...

    async with app.running():
        await app.enqueue_many([work.call(n) for n in range(6)])
        await until(lambda: database.sql("select count(*) from tenure.history where kind = 'rest'") == [(5,)])
        await until(lambda: database.sql("select input ->> 'n' from tenure.jobs where state = 'dead_letter'") == [("3",)])


async def test_other_outcomes_of_a_link_end_the_chain(app):
    @app.job
    async def decide(how: str) -> Fail | Cancel | None:
        return Fail("no") if how == "fail" else Cancel("not needed")

    @app.job
    async def first(how: str) -> Continue[None]:
        return Continue(decide, how)

    async with app.running():
        for how, told in (("fail", "no"), ("cancel", "not needed")):
            with pytest.raises(Exception, match=told):
                await (await first.enqueue(how)).result("30s")
