"""Limits as users have them: declared by code, obeyed by workers, changed while they run."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

import pytest

from tenure import Context, Limit, Rate, Tenure
from tenure.store import limits
from tenure.store.link import Link
from tests.waiting import until
from tests.worker.serving import serving


class ConcurrencyRecorder:
    """How many jobs run at a time, in total and per key, and in which order they start."""

    def __init__(self):
        self.running = self.most = self.count = 0
        self.keys: dict[object, int] = {}
        self.most_of_key = 0
        self.order: list[object] = []
        self.starts: list[float] = []

    async def record(self, key: object = None, seconds: float = 0.02) -> None:
        self.starts.append(time.monotonic())
        self.order.append(key)
        self.count += 1
        self.running += 1
        self.keys[key] = self.keys.get(key, 0) + 1
        self.most = max(self.most, self.running)
        self.most_of_key = max(self.most_of_key, self.keys[key])
        try:
            await asyncio.sleep(seconds)
        finally:
            self.running -= 1
            self.keys[key] -= 1


@pytest.fixture
def recorder():
    return ConcurrencyRecorder()


@pytest.fixture
async def fleet(app):
    """Several workers, each with a lease of its own."""
    async with AsyncExitStack() as stack:

        async def start(count: int, **options):
            return [await stack.enter_async_context(serving(app, **options)) for _ in range(count)]

        yield start


async def test_no_more_run_at_a_time_than_the_limit_says_over_all_workers(app, recorder, database, fleet):
    @app.job(concurrency=Limit(3))
    async def work(n: int) -> None:
        await recorder.record()

    database.observe()
    try:
        await app.enqueue_many([work.call(n) for n in range(60)])
        await fleet(3, concurrency=5)
        await until(lambda: recorder.count, is_=60, within=30)
        await until(lambda: database.sql("select count(*) from tenure.jobs"), is_=[(0,)])
        assert recorder.most == 3
        assert database.most_seen() == {"work": 3}
    finally:
        await asyncio.to_thread(database.blind)  # workers may be in the middle of a transaction, and are on this very loop


async def test_a_claim_under_a_limit_is_durable_and_an_ordinary_one_need_not_be(app, database, fleet):
    """Forgotten in a crash of the server, it would not count while its job still runs."""

    @app.job(concurrency=Limit(3))
    async def work() -> None: ...

    @app.job
    async def other() -> None: ...

    [(name,)] = database.sql("select current_database()")
    database.sql(f"alter database {name} set synchronous_commit = on")
    database.observe()
    try:
        await app.enqueue_many([work.call(), other.call()])
        await fleet(1)
        await until(lambda: database.sql("select count(*) from tenure.jobs"), is_=[(0,)])
        assert sorted(database.sql("select kind, durable from observer.starts")) == [("other", "off"), ("work", "on")]
    finally:
        await asyncio.to_thread(database.blind)  # workers may be in the middle of a transaction, and are on this very loop
        database.sql(f"alter database {name} reset synchronous_commit")


async def test_a_limit_per_tenant_and_a_limit_in_total_both_hold(app, recorder, database, fleet):
    @app.job(concurrency=[Limit(5), Limit(1, per="tenant_id")])
    async def work(tenant_id: str) -> None:
        await recorder.record(tenant_id)

    await app.enqueue_many([work.call(tenant) for tenant in "aaaaaaaaaabbbbbbbbbbcccdefgh"])
    await fleet(2, concurrency=10)
    await until(lambda: recorder.count, is_=28, within=30)
    assert recorder.most_of_key == 1
    assert 2 <= recorder.most <= 5


async def test_a_rate_is_kept_and_used(app, recorder, database, fleet):
    @app.job(rate=Rate(5, "1s"))
    async def work(n: int) -> None:
        await recorder.record(seconds=0)

    await app.enqueue_many([work.call(n) for n in range(16)])
    await fleet(2)
    await until(lambda: recorder.count, is_=16)
    rows = database.sql("select extract(epoch from started_at)::float8 from tenure.history order by 1")
    starts = [row[0] for row in rows]
    assert all(later - earlier >= 1 for earlier, later in zip(starts, starts[5:], strict=False))
    # A claim takes all that the rate allows.
    per_claim = database.sql("select count(*) from tenure.history group by claim_id order by 1 desc")
    assert per_claim[0] == (5,)


async def test_one_tenant_does_not_keep_others_waiting(app, recorder, fleet):
    @app.job(fair_by="tenant_id")
    async def work(tenant_id: str) -> None:
        await recorder.record(tenant_id, seconds=0)

    await app.enqueue_many([work.call("a") for _ in range(500)])
    await work.enqueue("b")
    await fleet(1, concurrency=1)
    await until(lambda: "b" in recorder.order)
    assert recorder.order.index("b") < 10


async def test_the_next_one_starts_as_soon_as_there_is_room(app, recorder, fleet):
    @app.job(concurrency=Limit(1))
    async def work(n: int) -> None:
        await recorder.record(seconds=0)

    await app.enqueue_many([work.call(n) for n in range(100)])
    await fleet(1)
    await until(lambda: recorder.count, is_=100, within=20)  # 25 s if each of them waited for a poll


async def test_others_go_on_while_a_limit_is_full(app, database, fleet):
    release, done = asyncio.Event(), []

    @app.job(concurrency=Limit(1))
    async def slow() -> None:
        await release.wait()

    @app.job
    async def quick(n: int) -> None:
        done.append(n)

    for _ in range(5):
        await slow.enqueue()
    await app.enqueue_many([quick.call(n) for n in range(50)])
    await fleet(1, concurrency=2)
    await until(lambda: len(done), is_=50)
    assert database.sql("select count(*) from tenure.jobs where kind = 'slow' and state = 'pending'") == [(4,)]
    release.set()
    await until(lambda: database.sql("select count(*) from tenure.jobs"), is_=[(0,)])


async def test_while_limited_jobs_fill_all_slots_others_are_not_looked_for_each_time(app, database, fleet, monkeypatch):
    """There were none a moment ago, and a wake-up announces new ones: before every second claim, it would be an empty one."""
    monkeypatch.setattr("tenure.worker.claim.combined_claimer.QUIET", 3600.0)
    asked = []
    original = Link.fetch

    async def fetch(link, query, **options):
        asked.append(query.name)
        return await original(link, query, **options)

    @app.job(concurrency=Limit(1000))
    async def work(n: int) -> None: ...

    @app.job
    async def other() -> None: ...

    await app.enqueue_many([work.call(n) for n in range(200)])
    monkeypatch.setattr(Link, "fetch", fetch)
    await fleet(1, concurrency=2)
    await until(lambda: database.sql("select count(*) from tenure.jobs") == [(0,)])
    assert asked.count("jobs/claim_jobs") < 50, "of at least a hundred claims"
    await (await other.enqueue()).result("10s")


async def test_a_limit_is_changed_while_workers_run(app, recorder, database, fleet):
    @app.job(concurrency=Limit(1))
    async def work(n: int) -> None:
        await recorder.record(seconds=0.2)

    await fleet(2)
    client = app.client()
    await app.enqueue_many([work.call(n) for n in range(40)])
    await until(lambda: recorder.count >= 2)
    assert recorder.most == 1
    assert await client.set_limit("kind:work", concurrency=Limit(4), by="ann") == {"concurrency": 4}
    await until(lambda: recorder.most, is_=4)
    await client.set_limit("kind:work", concurrency=Limit(0))
    await until(lambda: recorder.running, is_=0)
    assert database.sql("select count(*) > 0 from tenure.jobs where state = 'pending'") == [(True,)]
    await client.reset_limit("kind:work")
    await until(lambda: recorder.count > 8)
    assert (await client.limits())[0].rules == {"concurrency": 1}


async def test_an_override_survives_a_restart_of_workers(app, recorder, database, fleet):
    @app.job(concurrency=Limit(5))
    async def work(n: int) -> None:
        await recorder.record(seconds=0.05)

    await app.client().set_limit("kind:work", concurrency=Limit(2))
    await app.enqueue_many([work.call(n) for n in range(20)])
    await fleet(1)
    await until(lambda: recorder.count, is_=20)
    assert recorder.most == 2
    await until(lambda: database.sql("select count(*) from tenure.jobs"), is_=[(0,)])
    [status] = await app.client().limits()
    assert (status.declared, status.rules, status.running) == ({"concurrency": 5}, {"concurrency": 2}, 0)


async def test_a_limit_set_on_what_was_free_binds_what_waits(app, recorder, database, fleet):
    @app.job
    async def work(n: int) -> None:
        await recorder.record(seconds=0.05)

    await app.enqueue_many([work.call(n) for n in range(30)])
    await app.client().set_limit("kind:work", concurrency=Limit(1))
    await fleet(2)
    await until(lambda: recorder.count, is_=30)
    assert recorder.most == 1


async def test_when_a_limit_goes_what_waits_is_free(app, recorder, fleet):
    release = asyncio.Event()

    @app.job
    async def work(n: int) -> None:
        await recorder.record(seconds=0.0)
        await release.wait()

    await app.client().set_limit("kind:work", concurrency=Limit(1))
    await app.enqueue_many([work.call(n) for n in range(6)])
    await fleet(1)
    await until(lambda: recorder.count, is_=1)
    await app.client().reset_limit("kind:work")
    await until(lambda: recorder.count, is_=6)
    release.set()


async def test_jobs_inserted_without_the_function_do_not_slip_past_the_limit(app, recorder, database, fleet):
    @app.job(concurrency=Limit(1))
    async def work() -> None:
        await recorder.record(seconds=0.05)

    await fleet(2)
    await until(database.rules, is_={"kind:work": {"concurrency": 1}})
    for _ in range(10):
        database.sql(
            """insert into tenure.jobs (id, kind, state, position)
               select gen_random_uuid(), 'work', 'pending', nextval('tenure.job_position') from generate_series(1, 2)"""
        )
        database.sql("select pg_notify('tenure', 'jobs default')")
        await asyncio.sleep(0.02)  # each needs a search of its own
    await until(lambda: recorder.count, is_=20, within=30)
    assert recorder.most == 1


async def test_a_queue_is_limited_for_all_its_kinds(app, recorder, database, fleet):
    app.limit(queue="mail", concurrency=[Limit(4), Limit(2, per="tenant_id")])

    @app.job(queue="mail")
    async def one(tenant_id: str) -> None:
        await recorder.record(tenant_id)

    @app.job(queue="mail", concurrency=Limit(1))
    async def two(tenant_id: str) -> None:
        await recorder.record(tenant_id)

    database.observe()
    try:
        await app.enqueue_many([job.call(tenant) for tenant in "abc" for job in (one, two) for _ in range(8)])
        await fleet(2)
        await until(lambda: recorder.count, is_=48, within=30)
        await until(lambda: database.sql("select count(*) from tenure.jobs"), is_=[(0,)])
        assert database.most_seen("queue")["mail"] <= 4
        assert database.most_seen("kind")["two"] == 1
        assert max(database.most_seen("tenant").values()) <= 2
    finally:
        await asyncio.to_thread(database.blind)  # workers may be in the middle of a transaction, and are on this very loop


async def test_a_retry_of_a_limited_job_waits_for_room_again(app, recorder, fleet):
    from tenure import Retry

    @app.job(concurrency=Limit(1), retry=Retry(max_attempts=3, initial="10ms", max_backoff="10ms", jitter=False))
    async def work(ctx: Context) -> None:
        await recorder.record(seconds=0.01)
        if ctx.attempt < 3:
            raise ValueError("not yet")

    await app.enqueue_many([work.call() for _ in range(5)])
    await fleet(2)
    await until(lambda: recorder.count, is_=15)
    assert recorder.most == 1


async def test_a_job_that_enqueued_another_of_its_kind_does_not_wait_for_it_for_ever(app, recorder, fleet):
    @app.job(concurrency=Limit(1))
    async def work(n: int) -> None:
        if n:
            await work.enqueue(n - 1)
        await recorder.record(seconds=0)

    await fleet(1)
    await work.enqueue(5)
    await until(lambda: recorder.count, is_=6)


async def test_a_transaction_of_the_handlers_makes_room_when_it_commits(app, recorder, fleet):
    @app.job(concurrency=Limit(1), atomic=True)
    async def work(n: int) -> None:
        await recorder.record(seconds=0)

    await app.enqueue_many([work.call(n) for n in range(10)])
    await fleet(1)
    await until(lambda: recorder.count, is_=10)
    assert recorder.most == 1


async def test_a_worker_that_cannot_take_the_next_one_wakes_others(app, dsn, recorder, database):
    """The one that settles has no slot free any more; the other would look again only after its rest."""
    busy = asyncio.Event()

    @app.job(concurrency=Limit(1))
    async def work(n: int) -> None:
        await recorder.record(seconds=0)

    @app.job
    async def hog() -> None:
        await busy.wait()

    async with serving(app, concurrency=1), serving(app, concurrency=1):
        await app.enqueue_many([work.call(n) for n in range(10)])
        await hog.enqueue()
        await until(lambda: recorder.count, is_=10, within=10)
        busy.set()
        await until(lambda: database.sql("select count(*) from tenure.jobs"), is_=[(0,)])


async def test_declared_limits_of_two_apps_do_not_undo_each_other(app, dsn, database, fleet):
    """One app registers the kind only to enqueue it, and declares no limits."""

    @app.job(concurrency=Limit(2))
    async def work() -> None: ...

    stub = Tenure(dsn)

    @stub.job(name="work")
    async def work_elsewhere() -> None: ...

    await fleet(1)
    async with serving(stub):
        await until(database.rules, is_={"kind:work": {"concurrency": 2}})
        handle = await work_elsewhere.enqueue()
        await handle.result("10s")
    assert database.rules() == {"kind:work": {"concurrency": 2}}
    await stub.close()


async def test_two_versions_of_the_code_do_not_answer_each_other(app, dsn, database, fleet):
    @app.job(concurrency=Limit(2))
    async def work() -> None: ...

    newer = Tenure(dsn)

    @newer.job(name="work", concurrency=Limit(3))
    async def work_of_now() -> None: ...

    await fleet(2)
    async with serving(newer), serving(newer):
        await until(database.rules, is_={"kind:work": {"concurrency": 3}})
        for _ in range(20):
            await (await work_of_now.enqueue()).result("10s")
    assert database.rules() == {"kind:work": {"concurrency": 3}}
    assert database.sql("select version from tenure.limit_changes") == [(2,)]
    await newer.close()


async def test_limits_that_changed_without_a_notification_are_read(app, recorder, database, fleet):
    """No notification arrived: the next claim finds that it knows an older version."""

    @app.job
    async def work(n: int) -> None:
        await recorder.record(seconds=0.02)

    await fleet(1)
    await work.enqueue(0)
    await until(lambda: recorder.count, is_=1)
    database.run(limits.override("kind:work", {"concurrency": 1}, None))
    await app.enqueue_many([work.call(n) for n in range(20)])
    await until(lambda: recorder.count, is_=21)
    assert recorder.most == 1


async def test_a_job_whose_limit_went_while_it_was_scheduled_runs_when_it_is_due(app, database, monkeypatch):
    """The worker has another limit, under which nothing waits."""
    monkeypatch.setattr("tenure.worker.claim.known_limits.LEARN_EVERY", 0.5)

    @app.job(concurrency=Limit(5))
    async def one() -> None: ...

    @app.job(concurrency=Limit(5))
    async def other() -> None: ...

    async with serving(app):
        await (await one.enqueue()).result("10s")
        handle = await other.using(delay="1h").enqueue()
        await app.client().set_limit("kind:other", concurrency=None)
        await until(lambda: database.sql("select count(*) from tenure.limit_rules"), is_=[(1,)])
        database.sql("update tenure.jobs set run_at = now()")
        await handle.result("10s")
    await app.close()


async def test_a_job_that_waits_under_a_limit_that_does_not_exist_is_found_and_runs(app, database):
    """As one whose transaction committed after the limit was removed. No limit has ever changed, so only the search for such jobs
    finds it."""

    @app.job
    async def work() -> None: ...

    handle = await work.enqueue()
    database.sql("update tenure.jobs set limit_group = 'kind:gone'")
    async with serving(app):
        await handle.result("10s")
    await app.close()
