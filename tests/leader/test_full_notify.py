"""A server whose notification queue is full rejects NOTIFY. Work must continue: a lost notification costs only time."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from tenure.embedded import EmbeddedServer
from tenure.leader.leader import Leader
from tenure.leader.settings import LeaderSettings
from tenure.model.errors import ConfigError, StoreUnavailable
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget
from tenure.store.wakeups import Wakeups
from tests.leader.plans import plan
from tests.store.database import Database
from tests.waiting import until


@pytest.fixture(scope="module")
def small_server() -> Iterator[str]:
    """Its queue of notifications has half a megabyte. The setting is there since PostgreSQL 17."""
    folder = Path(tempfile.mkdtemp(prefix="notify-"))
    folder.chmod(0o711)
    server = EmbeddedServer(folder / "home", durable=False, settings={"max_notify_queue_pages": "64"})
    try:
        yield server.start().dsn
    except (ConfigError, StoreUnavailable) as error:
        pytest.skip(f"no such server here: {error}")
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def full(small_server: str) -> Iterator[Database]:
    """A session listens and stays in a transaction, so nothing leaves the queue; then it is filled."""
    asyncio.run(migrate(DatabaseTarget.at(small_server)))
    with Database(small_server) as database, psycopg.connect(small_server) as sleeper:
        sleeper.execute("listen anything")
        sleeper.commit()
        sleeper.execute("select 1")
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            while True:
                database.sql("select pg_notify('noise', %s)", "x" * 7000)
        yield database


@pytest.fixture
async def leader(full: Database, small_server: str) -> AsyncIterator[Leader]:
    place = DatabaseTarget.at(small_server)
    wakeups = Wakeups(place, lambda _: None)
    wakeups.start()
    leader = Leader(place, LeaderSettings(rotate=0.0), notify=wakeups.notify)
    leader.contact._since -= 3600.0
    yield leader
    await leader.stop()
    await wakeups.stop()


async def test_jobs_are_promoted_requeued_expired_and_planned_and_leases_are_released(full, leader):
    [due] = full.enqueue({"delay": 3600, "queue": "later"})
    full.sql("update tenure.jobs set run_at = now()")
    [left] = full.enqueue({"queue": "left"})
    dead = full.worker()
    assert full.claim(dead, queues=["left"]).ids == [left]
    full.condemn(dead)
    [leased] = full.enqueue({"queue": "leased"})
    assert full.claim(full.worker(), queues=["leased"], leases={"work": 0}).ids == [leased]
    plan(full, every="1s")
    full.sql("update tenure.schedules set since = now() - interval '2 s'")

    leader.start()
    states = "select id::text, state from tenure.jobs where queue <> 'default'"
    await until(lambda: dict(full.sql(states)), is_=dict.fromkeys((due, left, leased), "pending"))
    await until(lambda: full.sql("select count(*) > 0 from tenure.ticks where outcome = 'enqueued'"), is_=[(True,)])

    await leader.stop()
    assert full.sql("select count(*) from tenure.leases where expires_at > clock_timestamp()") == [(0,)]
