"""Queues, workers, leaders and counts."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from tenure import Tenure
from tenure.model.errors import ConfigError
from tenure.model.states import State
from tenure.store import cleaning, jobs
from tests.client.listening import notified


async def test_a_paused_queue_is_not_claimed_from_until_it_is_resumed(client, database, other):
    worker = database.worker()
    [job_id] = database.enqueue({})
    database.enqueue({"queue": "mail"})
    await client.pause("default", reason="upgrade", by="anna")
    assert database.claim(worker).ids == []
    assert len(database.claim(worker, queues=["mail"]).ids) == 1
    other.sql("listen tenure")
    [(before,)] = database.sql("select returns from tenure.queues where name = 'default'")
    assert await client.resume("default") is True
    assert await notified(other, 1) == {"jobs default"}
    assert database.sql("select returns from tenure.queues where name = 'default'") == [(before + 1,)], (
        "workers look from the start"
    )
    assert database.claim(worker).ids == [job_id]


async def test_a_queue_may_be_paused_before_it_exists_and_again_while_it_is(client, database):
    await client.pause("later", by="anna")
    [(first,)] = database.sql("select paused_at from tenure.queues")
    await client.pause("later", by="bert", reason="longer")
    assert database.sql("select paused_at, paused_by, pause_reason from tenure.queues") == [(first, "bert", "longer")]
    assert await client.resume("later") is True
    assert await client.resume("later") is False
    assert await client.resume("unknown") is False
    assert database.sql("select name, paused_at, paused_by, pause_reason from tenure.queues") == [("later", None, None, None)]


@pytest.mark.parametrize("queue", ["", "a\0b", None, 5])
async def test_a_queue_needs_a_name(client, queue):
    for verb in (client.pause, client.resume):
        with pytest.raises(ConfigError, match="name"):
            await verb(queue)


async def test_queues_show_what_waits_in_them_and_what_was_done(client, database):
    database.enqueue({"queue": "mail"}, {"queue": "mail"}, {"queue": "mail", "delay": 60})
    database.enqueue({}, {})
    database.run(jobs.finish(database.claim(database.worker()).finished(state="failed")))
    oldest = database.sql("select min(enqueued_at) from tenure.jobs where queue = 'mail' and state = 'pending'")[0][0]
    await client.pause("idle", reason="why", by="me")
    default, idle, mail = await client.queues()
    assert (default.name, default.live, default.finished, default.oldest_pending_at) == ("default", {}, {"failed": 2}, None)
    assert (idle.name, idle.paused, idle.paused_by, idle.pause_reason, idle.live) == ("idle", True, "me", "why", {})
    assert (mail.name, mail.paused, mail.oldest_pending_at) == ("mail", False, oldest)
    assert mail.live == {State.PENDING: 2, State.SCHEDULED: 1}


async def test_workers_show_all_that_is_known_about_them(client, database):
    busy, gone = database.worker(queues=["default", "mail"]), database.worker()
    database.enqueue({}, {})
    database.claim(busy)
    database.condemn(gone)
    late = database.worker(ttl=-1)
    workers = {str(worker.id): worker for worker in await client.workers()}
    assert list(workers) == [busy, gone, late]
    first = workers[busy]
    assert (first.host, first.pid, first.queues, first.kinds, first.capabilities) == (
        "here",
        1,
        ["default", "mail"],
        ["work"],
        [],
    )
    assert (first.concurrency, first.version, first.held, first.alive, first.died_at) == (10, "0", 2, True, None)
    assert isinstance(first.supervisor_id, UUID)
    assert first.expires_at > first.heartbeat_at >= first.started_at - timedelta(seconds=1)
    assert (workers[gone].alive, workers[gone].died_how) == (False, "crashed")
    assert (workers[late].alive, workers[late].died_how) == (False, None)


async def test_leaders_show_the_holder_of_each_duty(client, database):
    assert await client.leaders() == []
    stager, reaper = database.term("stager"), database.term("reaper")
    database.end_term("reaper")
    leaders = {leader.duty: leader for leader in await client.leaders()}
    assert list(leaders) == ["reaper", "stager"]
    assert (str(leaders["stager"].holder), leaders["stager"].term, leaders["stager"].holds) == (stager.holder, 1, True)
    assert (str(leaders["reaper"].holder), leaders["reaper"].holds, leaders["reaper"].metadata) == (reaper.holder, False, {})


async def test_counts_are_exact_before_and_after_they_are_merged(client, database):
    worker = database.worker()
    database.enqueue(*[{"input": {}} for _ in range(20)], *[{"queue": "mail"} for _ in range(3)])
    database.run(jobs.finish(database.claim(worker, limit=9).finished()))
    database.run(jobs.finish(database.claim(worker, limit=2).finished(state="failed")))
    database.run(jobs.move(database.claim(worker, limit=4).outcomes(state="retry", delay=60)))
    database.claim(worker, limit=1)
    await client.cancel_all(queue="mail")
    database.sql("update tenure.tallies set waited = jobs * interval '2 s', ran = jobs * interval '3 s' where what = 'completed'")
    for merged in (False, True):
        if merged:
            term = database.term("rollup")
            assert database.run(cleaning.merge_tallies(term, limit=3))[0][:2] == (True, 3)
            assert (await client.stats()).by_outcome == {"completed": 9, "failed": 2, "retry": 4, "canceled": 3}
            database.run(cleaning.merge_tallies(term, limit=100))
            assert database.sql("select count(*) from tenure.tallies") == [(0,)]
        stats = await client.stats()
        assert {(count.queue, count.kind, count.state): count.jobs for count in stats.live} == {
            ("default", "work", "pending"): 4,
            ("default", "work", "running"): 1,
            ("default", "work", "retry"): 4,
        }
        assert stats.by_state == {"pending": 4, "running": 1, "retry": 4}
        assert {(count.queue, count.what): count.jobs for count in stats.finished} == {
            ("default", "completed"): 9,
            ("default", "failed"): 2,
            ("default", "retry"): 4,
            ("mail", "canceled"): 3,
        }
        counts = {count.what: count for count in stats.finished}
        assert (counts["completed"].average_wait, counts["completed"].average_run) == (2.0, 3.0)
        assert (counts["retry"].average_wait, counts["retry"].average_run) == (None, None)


async def test_counts_of_a_real_fleet_are_exact_once_it_is_done(dsn, database):
    app = Tenure(dsn)

    @app.job
    async def work(n: int) -> int:
        return n

    async with app.running(concurrency=20):
        handles = await app.enqueue_many([work.call(n) for n in range(200)])
        for handle in handles:
            await handle.result(timeout="20s")
    stats = await app.client().stats()
    assert (stats.live, stats.by_outcome) == ([], {"completed": 200})
    [count] = stats.finished
    [(wait, run)] = database.sql(
        """select extract(epoch from avg(started_at - enqueued_at))::float8,
                  extract(epoch from avg(finished_at - started_at))::float8
             from tenure.history"""
    )
    assert (count.average_wait, count.average_run) == pytest.approx((wait, run), rel=0.01)
    await app.close()


async def test_statistics_never_look_at_history(client, database):
    database.enqueue({})
    database.run(jobs.finish(database.claim(database.worker()).finished()))
    database.sql("begin")
    database.sql("lock table tenure.history in access exclusive mode")
    assert (await client.stats()).by_outcome == {"completed": 1}
    assert len(await client.queues()) == 1
    database.sql("rollback")


def test_code_without_a_loop_looks_after_queues_too(dsn, database):
    app = Tenure(dsn)
    client = app.client()
    client.pause_sync("mail")
    assert [queue.name for queue in client.queues_sync()] == ["mail"]
    assert client.resume_sync("mail") is True
    assert (client.workers_sync(), client.leaders_sync(), client.stats_sync().live) == ([], [], [])
    app._portal.close()
