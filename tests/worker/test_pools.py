"""Connections for handlers: one for each slot, and no run waits for ever because other runs hold them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tenure import Context, Retry
from tenure.model.errors import StoreUnavailable
from tenure.store import pools
from tenure.store.pools import Pools
from tenure.store.quota import Quota
from tests.waiting import until
from tests.worker.serving import serving

HANDLERS = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'tenure handler'"
SLOTS = 3


class Asker:
    """A run that requests connections, one after the other."""

    def __init__(self, quota: Quota) -> None:
        self.quota, self.granted = quota, 0

    def ask(self) -> object:
        return self.quota.request(self, self.grant)

    def grant(self) -> None:
        self.granted += 1

    def leave(self) -> None:
        self.quota.release(self)


def test_connections_are_granted_in_order_and_within_the_quota_while_a_holder_can_release_one():
    quota = Quota(2)
    askers = [Asker(quota) for _ in range(4)]
    for asker in askers:
        asker.ask()
    assert [asker.granted for asker in askers] == [1, 1, 0, 0]
    askers[1].leave()
    assert [asker.granted for asker in askers] == [1, 1, 1, 0]
    assert quota.in_use == 2


def test_when_every_holder_waits_for_another_connection_the_first_of_them_gets_one_more():
    quota = Quota(2)
    first, second, stranger = Asker(quota), Asker(quota), Asker(quota)
    first.ask()
    second.ask()
    stranger.ask()
    first.ask()
    assert (first.granted, quota.in_use) == (1, 2)  # the second may still release its connection
    second.ask()
    assert (first.granted, second.granted, stranger.granted, quota.in_use) == (2, 1, 0, 3)
    first.leave()
    assert second.granted == 1  # the first still holds one, and does not wait
    first.leave()
    assert (second.granted, stranger.granted) == (1, 1)


def test_a_withdrawn_request_is_not_granted_and_a_granted_one_cannot_be_withdrawn():
    quota = Quota(1)
    first, second = Asker(quota), Asker(quota)
    ticket = first.ask()
    waiting = second.ask()
    assert (quota.withdraw(waiting), quota.withdraw(ticket)) == (True, False)
    first.leave()
    assert (second.granted, quota.in_use) == (0, 0)


def define(app, met: threading.Barrier):
    """Jobs that want a second connection when every slot holds one."""

    @app.job(retry=Retry(1))
    async def in_loop(ctx: Context) -> str:
        async with ctx.db() as outer:
            await outer.execute("select 1")
            await asyncio.to_thread(met.wait)
            async with ctx.transaction() as inner:
                await inner.execute("select 1")
        return "done"

    @app.job(retry=Retry(1))
    def in_thread(ctx: Context) -> str:
        with ctx.db() as outer:
            outer.execute("select 1")
            met.wait()
            with ctx.db() as inner, ctx.db() as innermost:
                inner.execute("select 1")
                innermost.execute("select 1")
        return "done"

    return {"loop": in_loop, "thread": in_thread}


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_runs_that_all_want_a_second_connection_get_it(app, database, where):
    job = define(app, threading.Barrier(SLOTS, timeout=20))[where]
    async with serving(app, concurrency=SLOTS):
        handles = await app.enqueue_many([job.call() for _ in range(SLOTS)])
        assert [await handle.result(timeout=15) for handle in handles] == ["done"] * SLOTS
    await app.close()


async def test_the_error_after_a_wait_names_the_number_of_connections_and_the_way_out(database_target, sql, monkeypatch):
    monkeypatch.setattr(pools, "PATIENCE", 0.1)
    handlers = Pools(database_target, 1)
    try:
        async with handlers.connection():
            with pytest.raises(StoreUnavailable, match=r"hold 1 of 1; leave the blocks of ctx"):
                await handlers.take()
        async with handlers.connection() as connection:  # the quota is free again
            await connection.execute("select 1")
        assert sql(HANDLERS) == [(1,)]
    finally:
        await handlers.close()
    await until(lambda: sql(HANDLERS), is_=[(0,)])
