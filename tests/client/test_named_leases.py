"""Leases of users: one holder at a time, even if processes die, and each holder learns when it has lost the lease."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tenure import ConfigError, LeaseNotHeld, LeaseTaken, StoreUnavailable, Tenure
from tenure.cli.doctor import of_workers
from tenure.client import leases as module
from tenure.leader.duties.registry import DUTIES
from tenure.leader.leader import Leader
from tenure.model.wakeup import Wakeup
from tenure.store.faults import Refused
from tenure.store.link import Link
from tests.planted_secrets import assert_no_secret
from tests.waiting import until

HOLDING = """
import asyncio, sys
from tenure import Tenure

app = Tenure(sys.argv[1])

async def main():
    async with app.lease("import", duration="3s") as lease:
        print(lease.term, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
async def app(app: Tenure) -> AsyncIterator[Tenure]:
    yield app
    await app.close()


@pytest.fixture
async def other(dsn: str) -> AsyncIterator[Tenure]:
    """The app of another process."""
    app = Tenure(dsn)
    yield app
    await app.close()


@pytest.fixture
def holding(dsn: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lease."""
    command, log = [sys.executable, "-c", HOLDING, dsn], tmp_path / "holding.log"
    with log.open("w") as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "1"
    yield process
    process.kill()
    assert_no_secret(process.communicate()[0] + log.read_text())


async def test_it_is_held_inside_the_block_and_free_after_it(app, database):
    async with app.lease("import") as lease:
        assert (lease.name, lease.term, lease.lost.is_set()) == ("import", 1, False)
        assert 0 < lease.seconds_left <= 15
        lease.check()
        [found] = [leader for leader in await app.client().leaders() if leader.duty == "lease:import"]
        assert (found.state, found.term, found.metadata["pid"]) == ("holds", 1, os.getpid())
    [found] = [leader for leader in await app.client().leaders() if leader.duty == "lease:import"]
    assert found.state == "free"
    async with app.lease("import") as again:
        assert again.term == 2


async def test_another_that_does_not_wait_is_refused_at_once(app, other):
    async with app.lease("import"):
        with pytest.raises(LeaseTaken, match="tenure leaders"):
            async with other.lease("import", wait=False):
                pass
        lease = other.lease("import", wait=False)
        assert not await lease.acquire()
        async with other.lease("another", wait=False):
            pass
    assert await lease.acquire()
    await lease.release()


async def test_two_of_one_process_exclude_each_other_as_well(app):
    async with app.lease("import"):
        assert not await app.lease("import", wait=False).acquire()


async def test_a_wait_has_an_end(app, other):
    async with app.lease("import"):
        with pytest.raises(LeaseTaken):
            async with other.lease("import", timeout="200ms"):
                pass


async def test_a_waiter_gets_it_as_soon_as_it_is_released(app, other, monkeypatch):
    """By a notification: its polls are an hour apart."""
    monkeypatch.setattr(module, "LONGEST_LOOK", 3600.0)
    first = app.lease("import", duration="1h")
    assert await first.acquire()
    second = other.lease("import", duration="1h")
    waiting = asyncio.create_task(second.acquire())
    await until(lambda: other._connections.session().waiting._waiters)
    [news] = other._connections.session().waiting._waiters[Wakeup.lease_released("import")]
    await until(lambda: news._patience > 1.0)  # it has looked some times, and looks more and more rarely
    await first.release()
    assert await waiting
    assert second.term == 2
    await second.release()


async def test_it_is_renewed_while_it_is_held(app, database):
    async with app.lease("import", duration="3s") as lease:
        [(first,)] = database.sql("select expires_at from tenure.leases where name = 'lease:import'")
        await until(lambda: database.sql("select expires_at > %s from tenure.leases", first), is_=[(True,)])
        lease.check()


async def test_a_holder_that_lost_it_knows(app, database):
    with pytest.raises(LeaseNotHeld, match="term 1"):
        async with app.lease("import", duration="3s") as lease:
            database.sql("update tenure.leases set holder = gen_random_uuid(), term = term + 1")
            await asyncio.wait_for(lease.lost.wait(), 10)
            with pytest.raises(LeaseNotHeld):
                lease.check()
            assert lease.seconds_left == 0
    assert database.sql("select term, expires_at > now() from tenure.leases") == [(2, True)], "the new holder's is not released"


async def test_a_holder_that_cannot_renew_it_knows_before_another_can_have_it(app, database, monkeypatch):
    """No statement reports it: the holder compares its own clock."""
    async with app.lease("import", duration="1h") as lease:
        clock, ahead = module.boottime, 0.0
        monkeypatch.setattr(module, "boottime", lambda: clock() + ahead)
        lease.check()
        ahead = 3599.5
        with pytest.raises(LeaseNotHeld):
            lease.check()
        assert database.sql("select expires_at > now() from tenure.leases") == [(True,)]
        ahead = 0.0


async def test_an_error_of_the_block_is_raised_as_it_is_and_the_lease_is_free(app, other):
    with pytest.raises(ZeroDivisionError):
        async with app.lease("import"):
            raise ZeroDivisionError
    async with other.lease("import", wait=False):
        pass


async def test_of_a_killed_process_another_gets_it_when_it_has_run_out(app, holding):
    waiting = app.lease("import", timeout="30s")
    assert not await app.lease("import", wait=False).acquire()
    os.kill(holding.pid, signal.SIGKILL)
    assert await waiting.acquire()
    assert waiting.term == 2
    await waiting.release()


async def test_a_process_that_was_asleep_for_long_finds_that_it_lost_it(app, holding):
    os.kill(holding.pid, signal.SIGSTOP)
    lease = app.lease("import", timeout="30s")
    assert await lease.acquire()
    os.kill(holding.pid, signal.SIGCONT)
    lease.check()
    await lease.release()


async def test_of_many_that_want_it_one_has_it_at_a_time(dsn, app):
    inside, most, terms = 0, 0, []

    async def work() -> None:
        nonlocal inside, most
        async with app.lease("import") as lease:
            inside += 1
            most = max(most, inside)
            terms.append(lease.term)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(8)))
    assert most == 1
    assert terms == list(range(1, 9))


def test_code_without_an_event_loop_has_it_too(dsn, database):
    app = Tenure(dsn)
    with app.lease_sync("import") as lease:
        assert (lease.term, lease.lost.is_set()) == (1, False)
        lease.check()
        assert not app.lease_sync("import", wait=False).acquire()
        with pytest.raises(LeaseTaken), app.lease_sync("import", timeout=0.1):
            pass
    with pytest.raises(LeaseNotHeld), app.lease_sync("import", duration="3s") as lease:
        database.sql("update tenure.leases set holder = gen_random_uuid(), term = term + 1")
        assert lease.lost.wait(10)
        with pytest.raises(LeaseNotHeld):
            lease.check()


def test_threads_exclude_each_other(dsn):
    app, inside, seen = Tenure(dsn), threading.Semaphore(1), []

    def work() -> None:
        with app.lease_sync("import"):
            seen.append(inside.acquire(blocking=False))
            inside.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 4


async def test_duties_and_leases_do_not_meet(database_target, app, database):
    """A lease called like a duty is another row, and its end is nothing that the doctor has to tell."""
    leader = Leader(database_target)
    leader.start()
    try:
        await until(lambda: len(leader.duties_held), is_=len(DUTIES))
        async with app.lease("stager", wait=False) as lease:
            assert lease.term == 1
        leaders = await app.client().leaders()
        assert [found.code for found in of_workers([], leaders)] == ["no_workers"]
        database.sql("update tenure.leases set acquired_at = now() - interval '1 hour', expires_at = now() + interval '1 hour'")
        [found] = [leader for leader in await app.client().leaders() if leader.duty == "lease:stager"]
        assert not found.stuck
    finally:
        await leader.stop()


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\0b", 7])
def test_a_name_that_cannot_be_is_refused(app, name):
    with pytest.raises(ConfigError, match="printable name"):
        app.lease(name)


def test_options_that_contradict_each_other_are_refused(app):
    with pytest.raises(ConfigError, match="either"):
        app.lease("x", wait=False, timeout="1s")
    with pytest.raises(ConfigError, match="at least 3 s"):
        app.lease("x", duration="1s")


async def test_a_lease_that_is_held_is_not_acquired_twice(app):
    lease = app.lease("x")
    with pytest.raises(LeaseNotHeld, match="acquire"):
        lease.check()
    with pytest.raises(LeaseNotHeld):
        lease.term  # noqa: B018
    assert await lease.acquire()
    with pytest.raises(ConfigError, match="already"):
        await lease.acquire()
    await lease.release()
    await lease.release()


async def test_a_holder_whose_renewal_hangs_knows_in_time(app, database, monkeypatch):
    async with app.lease("import", duration="3s") as lease:
        hangs = asyncio.Event()

        async def hang(*_, **__):
            hangs.set()
            await asyncio.sleep(600)

        monkeypatch.setattr(lease._link, "fetch", hang)
        await hangs.wait()
        await asyncio.wait_for(lease.lost.wait(), 10)
        assert database.sql("select expires_at > now() from tenure.leases") == [(True,)], "it knows before another can have it"
        monkeypatch.undo()
        with suppress(LeaseNotHeld):
            await lease.release()


async def test_a_holder_whose_renewal_is_refused_knows_in_time(app, database, monkeypatch):
    async with app.lease("import", duration="3s") as lease:

        async def refuse(*_, **__):
            raise Refused("a trigger says no")

        monkeypatch.setattr(lease._link, "fetch", refuse)
        await asyncio.wait_for(lease.lost.wait(), 10)
        monkeypatch.undo()
        await lease.release()


async def test_a_lease_that_an_unanswered_call_won_is_renewed_before_it_is_believed(app, database, monkeypatch):
    lease = app.lease("import", duration="1h")
    asked = Link.fetch

    async def unanswered(link, query, **options):
        rows = await asked(link, query, **options)
        if query.name == "leases/acquire_leases":
            monkeypatch.undo()
            database.sql("update tenure.leases set expires_at = expires_at - interval '20 min'")
            raise StoreUnavailable("the answer was lost")
        return rows

    monkeypatch.setattr(Link, "fetch", unanswered)
    async with lease:
        [(left,)] = database.sql("select extract(epoch from expires_at - now())::float8 from tenure.leases")
        assert lease.seconds_left < left
