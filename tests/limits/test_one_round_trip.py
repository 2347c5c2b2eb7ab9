"""A worker sends lock and claim together: the claim must learn from the server what was locked, and an error undoes both."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
import uvloop

from tenure.store import limits
from tenure.store.faults import Refused
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget
from tests.limits.limits_database import LimitsDatabase, limited_claim_query

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
LOCK = limits.lock(["kind:work", "kind:other"], ["default"])


def claim(worker):
    return limited_claim_query(worker, str(uuid4()), None)


@pytest.mark.parametrize("loop", LOOPS)
def test_lock_and_claim_are_one_transaction(dsn, database, loop):
    database.limit("kind:work", concurrency=3)
    database.many(5)
    worker = database.worker()

    async def both():
        async with Link(DatabaseTarget.at(dsn), "test", hot=True) as link:
            for count in (3, 0):
                locks, rows = await link.fetch_both(LOCK, claim(worker))
                assert [row.locked for row in locks] == [True] * bool(count), "a full limit is not locked"
                assert len(rows[1:]) == count
            assert link.sessions == 1

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(both())
    assert database.sql("select count(*) from tenure.jobs where state = 'running'") == [(3,)]
    assert database.lock() == [], "the limit is full"
    database.limit("kind:work", concurrency=4)
    assert database.lock() == ["kind:work"], "and nothing keeps it locked"


async def test_a_limit_that_another_session_has_locked_is_not_claimed_under(dsn, database, other):
    database.limit("kind:work", concurrency=5)
    database.limit("kind:other", concurrency=5)
    database.many(2)
    [free] = database.many(1, kind="other")
    worker = database.worker()
    async with Link(DatabaseTarget.at(dsn), "test") as link:
        with other.connection.transaction():
            assert other.lock(kinds=["work"]) == ["kind:work"]
            locks, rows = await link.fetch_both(LOCK, claim(worker))
            assert {row.name: row.locked for row in locks} == {"kind:work": False, "kind:other": True}
            assert [row.job.id for row in rows[1:]] == [free]
            other.lock(kinds=["other"])
            _, rows = await link.fetch_both(LOCK, claim(worker))
            assert rows[1:] == [], "what an earlier transaction had locked does not count"
        _, rows = await link.fetch_both(LOCK, claim(worker))
        assert len(rows[1:]) == 2


def test_a_claim_without_a_lock_takes_nothing(database):
    database.limit("kind:work", concurrency=5)
    database.many(2)
    worker = database.worker()
    assert database.take_locked(worker, None).ids == []
    assert database.take(worker).ids != []
    database.many(2)
    assert database.take_locked(worker, None).ids == [], "the lock of another transaction does not count"


async def test_a_refused_claim_undoes_the_lock_and_keeps_the_connection(dsn, database):
    database.limit("kind:work", concurrency=5, rate=[5, 60])
    database.many(2)
    worker = database.worker()
    database.connection.execute(
        """create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
           create trigger refuse before update on tenure.jobs for each row execute function public.refuse()""",
        prepare=False,
    )
    async with Link(DatabaseTarget.at(dsn), "test", hot=True) as link:
        with pytest.raises(Refused, match="no"):
            await link.fetch_both(LOCK, claim(worker))
        assert database.lock() == ["kind:work"]
        assert database.sql("select count(*) from tenure.starts") == [(0,)]
        database.sql("drop function public.refuse cascade")
        _, rows = await link.fetch_both(LOCK, claim(worker))
        assert (len(rows[1:]), link.sessions) == (2, 1)


@pytest.mark.parametrize("pooled", [False, True])
async def test_the_claim_sees_what_was_committed_before_it_under_any_default_isolation(fresh_dsn, pooled):
    """In a repeatable read transaction, the claim would count in the snapshot of the lock."""
    with LimitsDatabase(fresh_dsn) as database:
        [(name,)] = database.sql("select current_database()")
        database.sql(f"alter database {name} set default_transaction_isolation = 'repeatable read'")
        database.limit("kind:work", concurrency=5)
        database.many(1)
        database.connection.execute(
            """create table public.seen (isolation text);
               create function public.see() returns trigger language plpgsql as
                   $$ begin insert into public.seen values (current_setting('transaction_isolation')); return new; end $$;
               create trigger see before update on tenure.jobs for each row execute function public.see()""",
            prepare=False,
        )
        async with Link(DatabaseTarget.at(fresh_dsn, pooled=pooled), "test") as link:
            _, rows = await link.fetch_both(LOCK, claim(database.worker()))
            assert len(rows[1:]) == 1
        assert database.sql("select isolation from public.seen") == [("read committed",)]
