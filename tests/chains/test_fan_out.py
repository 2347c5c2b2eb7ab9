"""Ten thousand jobs that wait for one chain, groups and workflows of ten thousand jobs: the statements grow as the jobs do."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from tenure import Context, Tenure, WorkflowContext
from tenure.store import jobs
from tenure.store.duty_link import DutyLink
from tenure.store.link import Link
from tenure.worker.run.steps import LARGEST_GROUP
from tests.chains.resolving import Resolving, resolving
from tests.store.database import Database

BATCH = 1000
MANY = [pytest.param(3 * BATCH), pytest.param(10 * BATCH, marks=pytest.mark.slow)]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, link: type[Link] = Link) -> Iterator[Counter[str]]:
    """How often each statement is sent on links of this class, by name."""
    sent: Counter[str] = Counter()
    fetch = link.fetch

    async def counting(self, query, **more):
        sent[query.name] += 1
        return await fetch(self, query, **more)

    with monkeypatch.context() as patch:
        patch.setattr(link, "fetch", counting)
        yield sent


@asynccontextmanager
async def counting_resolver(
    database: Database, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Resolving, Counter[str]]]:
    async with resolving(database, dsn) as resolver:
        with counted(monkeypatch, DutyLink) as sent:
            yield resolver, sent


def states(database: Database) -> dict[str, int]:
    return dict(database.sql("select state, count(*) from tenure.all_jobs group by state"))


def drain(database: Database, worker: str) -> int:
    """Claims and completes all that is pending. Returns how many."""
    done = 0
    while ids := (claim := database.claim(worker, limit=BATCH)).ids:
        done += len(database.run(jobs.finish(claim.finished())))
        assert done >= len(ids)
    return done


def per_batch(sent: Counter[str], count: int) -> float:
    """The largest number of times that a statement was sent, by the number of batches that the jobs are."""
    return max(sent.values()) / (count / BATCH)


@pytest.mark.parametrize("count", MANY)
async def test_jobs_that_wait_for_one_chain_are_moved_in_batches(database, dsn, count, monkeypatch):
    worker = database.worker()
    [chain] = database.enqueue({})
    database.enqueue(*({"after": [chain]} for _ in range(count)))
    async with counting_resolver(database, dsn, monkeypatch) as (resolver, sent):
        await resolver.settle()
        database.run(jobs.finish(database.claim(worker).finished()))
        await resolver.settle()
        assert states(database) == {"completed": 1, "pending": count}
        # A round for each batch when they are armed, one when their chain has ended; and one that finds nothing, twice.
        assert per_batch(sent, count) <= 2 + 2 * BATCH / count
    assert drain(database, worker) == count
    assert database.sql("select count(*) from tenure.blocked where missing is not null") == [(0,)]


@pytest.mark.parametrize("count", MANY)
async def test_the_jobs_are_canceled_in_batches_if_their_chain_fails(database, dsn, count, monkeypatch):
    worker = database.worker()
    [chain] = database.enqueue({})
    database.enqueue(*({"after": [chain]} for _ in range(count)))
    async with counting_resolver(database, dsn, monkeypatch) as (resolver, sent):
        await resolver.settle()
        database.run(jobs.finish(database.claim(worker).finished(state="failed", error="no")))
        await resolver.settle()
        assert states(database) == {"failed": 1, "canceled": count}
        assert per_batch(sent, count) <= 2 + 2 * BATCH / count


@pytest.mark.parametrize("count", MANY)
async def test_a_group_counts_its_members_in_batches_and_has_all_results(database, dsn, count, monkeypatch):
    app = Tenure(dsn)

    @app.job
    async def member(number: int) -> int:
        return number

    @app.job
    async def total(ctx: Context) -> int:
        [results] = ctx.blockers
        return sum(results)

    with counted(monkeypatch) as sent:
        group = await app.map(member, range(count))
        callback = await total.using(after=[group]).enqueue()
        assert per_batch(sent, count) <= 2
    async with app.running(concurrency=200):
        assert await callback.result("120s") == sum(range(count))
        assert await group.results() == list(range(count))
    await app.close()
    assert states(database) == {"completed": count + 2}
    [(runs,)] = database.sql("select max(fence) from tenure.history where kind <> 'tenure.group'")
    assert runs == 1


@pytest.mark.parametrize("count", [pytest.param(300), pytest.param(10 * BATCH, marks=pytest.mark.slow)])
async def test_a_workflow_starts_each_of_its_children_once_and_runs_twice(database, dsn, count, monkeypatch):
    app = Tenure(dsn)

    @app.job
    async def child(number: int) -> int:
        return number

    @app.workflow(timeout=None)
    async def parent(ctx: WorkflowContext, children: int) -> int:
        return sum(await ctx.gather(*(ctx.call(child, number) for number in range(children))))

    with counted(monkeypatch) as sent:
        async with app.running(concurrency=200):
            handle = await parent.enqueue(count)
            assert await handle.result("300s") == sum(range(count))
    await app.close()
    assert sent["workflows/start_children"] == -(-count // LARGEST_GROUP)
    # What the workflow itself needs does not depend on the number of its children.
    own = ("steps/load_steps", "blockers/find_blockers", "workflows/suspend_jobs", "steps/record_steps")
    assert {name: sent[name] for name in own} == dict.fromkeys(own, 1)
    assert database.sql("select kind, count(*), max(fence) from tenure.history group by kind order by kind") == [
        ("child", count, 1),
        ("parent", 1, 2),
    ]
