"""Settings of the role, the database or the DSN: what our statements rely on is set, or an error is reported."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tenure import ConfigError, Context, Limit, StoreUnavailable, Tenure
from tenure.chaos.pooler import PGBOUNCER, Pooler
from tenure.store import limits, queues, workers
from tenure.store.connecting import PINNED, TRANSACTION_TIMEOUT, check_settings, target
from tenure.store.link import Link
from tenure.store.link_pool import LinkPool
from tenure.store.migrator import check_schema
from tenure.store.sync_link import SyncLink
from tenure.store.target import DatabaseTarget
from tests.store.database import Database
from tests.waiting import until
from tests.worker.serving import serving

HOSTILE = {
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "standard_conforming_strings": "off",
    "datestyle": "SQL, DMY",
    "intervalstyle": "iso_8601",
    "timezone": "Asia/Kathmandu",
    "client_encoding": "LATIN1",
    "statement_timeout": "1ms",
    "lock_timeout": "1ms",
    "idle_session_timeout": "200ms",
    "enable_indexscan": "off",
    "enable_nestloop": "off",
    "search_path": "nowhere, pg_catalog",
    "row_security": "off",
}
needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed (apt-get install pgbouncer)")


@pytest.fixture
def hostile(fresh_dsn):
    """A database whose settings are all against us."""
    with psycopg.connect(fresh_dsn, autocommit=True) as connection:
        [(name, version)] = connection.execute(
            "select current_database(), current_setting('server_version_num')::integer"
        ).fetchall()
        for setting, value in HOSTILE.items() | ({("transaction_timeout", "1s")} if version >= 170000 else set()):
            connection.execute(f"alter database {name} set {setting} = '{value}'")
    return fresh_dsn


async def settings_of(link: Link, names):
    """As the link's own connection has them."""
    await link.open()
    connection = link._connection
    return {name: (await (await connection.execute(f"show {name}")).fetchone())[0] for name in names}


@pytest.mark.parametrize("hot", [True, False])
async def test_a_link_overrides_the_settings_of_the_database(hostile, hot):
    async with Link(DatabaseTarget.at(hostile), "test", hot=hot) as link:
        found = await settings_of(link, [*PINNED, "client_encoding", "enable_indexscan"])
        if link._connection.info.server_version >= TRANSACTION_TIMEOUT:
            assert await settings_of(link, ["transaction_timeout"]) == {"transaction_timeout": "0"}
        # In words of its own: a setting that is missing in PINNED would not be looked at above.
        timeouts = {"statement_timeout": "0", "lock_timeout": "0"}
        assert await settings_of(link, timeouts) == timeouts
    assert found == {**PINNED, "client_encoding": "UTF8", "enable_indexscan": "on" if hot else "off"}


async def test_statements_that_read_many_rows_are_planned_for_their_values(hostile):
    """A plan for any values was kept after the fifth run, and took three times as long."""
    app = Tenure(hostile)
    wide, narrow = {"plan_cache_mode": "force_custom_plan"}, {"plan_cache_mode": "force_generic_plan"}
    session = app._runtime.session()
    assert await settings_of(session._wide_link, wide) == wide
    assert await settings_of(session._link, narrow) == narrow
    pool = LinkPool(DatabaseTarget.at(hostile), "test", size=1, within=1.0, hot=False)
    assert await settings_of(pool._links[0], wide) == wide
    await pool.close()
    await app.close()


async def test_what_the_dsn_says_does_not_win_over_what_we_rely_on(fresh_dsn):
    dsn = make_conninfo(
        fresh_dsn, options="-c default_transaction_isolation=serializable -c work_mem=5MB", client_encoding="LATIN1"
    )
    async with Link(DatabaseTarget.at(dsn), "test") as link:
        found = await settings_of(link, ["default_transaction_isolation", "work_mem", "client_encoding"])
    assert found == {"default_transaction_isolation": "read committed", "work_mem": "5MB", "client_encoding": "UTF8"}


async def test_work_is_done_in_a_database_whose_settings_are_all_against_it(hostile):
    app = Tenure(hostile)

    @app.job
    async def plain(word: str) -> str:
        return word + "\u2603"

    @app.job(concurrency=Limit(1), key="n")
    async def limited(n: int) -> int:
        return n

    async with serving(app):
        handles = [await plain.enqueue("a"), await plain.using(delay="200ms").enqueue("b"), await limited.enqueue(3)]
        assert [await handle.result(timeout=15) for handle in handles] == ["a\u2603", "b\u2603", 3]
    await app.close()


async def test_behind_a_pooler_times_are_read_in_any_style(fresh_dsn):
    """No connection can set a style of its own there."""
    with psycopg.connect(fresh_dsn, autocommit=True) as connection:
        [(name,)] = connection.execute("select current_database()").fetchall()
        for setting, value in {"datestyle": "German", "intervalstyle": "sql_standard", "timezone": "Asia/Kathmandu"}.items():
            connection.execute(f"alter database {name} set {setting} = '{value}'")
    await check_schema(DatabaseTarget.at(fresh_dsn, pooled=True))
    app = Tenure(fresh_dsn, pooled=True)

    @app.job
    async def work(n: int) -> int:
        return n

    async with serving(app):
        handle = await work.using(delay="100ms").enqueue(3)
        assert await handle.result(timeout=15) == 3
    status = await handle.status()
    assert status.finished_at - status.enqueued_at >= timedelta(milliseconds=100)
    assert (await app.client().workers()) == []
    await app.close()


async def test_handlers_keep_the_settings_of_the_user(fresh_dsn):
    with psycopg.connect(fresh_dsn, autocommit=True) as connection:
        [(name,)] = connection.execute("select current_database()").fetchall()
        connection.execute(f"alter database {name} set default_transaction_isolation = 'serializable'")
        connection.execute(f"alter database {name} set client_encoding = 'LATIN1'")
    app = Tenure(fresh_dsn)

    @app.job
    async def work(ctx: Context) -> list[str]:
        async with ctx.transaction() as connection:
            names = ("transaction_isolation", "client_encoding")
            return [(await (await connection.execute(f"show {name}")).fetchone())[0] for name in names] + ["\u2603"]

    async with serving(app):
        assert await (await work.enqueue()).result(timeout=30) == ["serializable", "UTF8", "\u2603"]
    await app.close()


@pytest.mark.parametrize("pooled", [False, True])
async def test_a_limit_of_one_holds_where_the_default_is_repeatable_read(fresh_dsn, pooled):
    """The second claimer has looked, and got no lock, before the first one has claimed."""
    with psycopg.connect(fresh_dsn, autocommit=True) as connection:
        [(name,)] = connection.execute("select current_database()").fetchall()
        connection.execute(f"alter database {name} set default_transaction_isolation = 'repeatable read'")
    place = DatabaseTarget.at(fresh_dsn, pooled=pooled)
    lock = limits.lock(["kind:work"], ["default"])
    with Database(fresh_dsn) as database:
        database.run(limits.declare({"kind:work": {"concurrency": 1, "concurrency_per_key": 1, "key": "t"}}))
        database.enqueue({"input": {"t": 1}}, {"input": {"t": 2}})
        async with (
            Link(place, "claim") as first,
            Link(place, "claim") as second,
            first.transaction() as run_first,
            second.transaction() as run_second,
        ):
            assert await run_first(lock) == [("kind:work", True)]
            assert await run_second(lock) == [("kind:work", False)]
            assert len((await run_first(claim_of(database.worker(), "")))[1:]) == 1
            await first._connection.execute("commit")
            await run_second(lock)
            await run_second(claim_of(database.worker(), "kind:work/t=1"))
        assert database.sql("select count(*) from tenure.jobs where state = 'running'") == [(1,)]


def claim_of(worker, after):
    return limits.claim(
        worker_id=worker,
        claim_id=str(uuid4()),
        locked=["kind:work"],
        queues=json.dumps([{"queue": "default", "after": after}]),
        steps=100,
        limit=10,
        kinds="{work}",
        capabilities="{}",
        leases="{}",
        which="all",
    )


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_in_another_encoding_works(server_dsn, encoding):
    """A result that it cannot keep fails its own job."""
    name = f"encoded_{encoding.lower()}"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"drop database if exists {name} with (force)")
        admin.execute(f"create database {name} encoding '{encoding}' template template0 lc_collate 'C' lc_ctype 'C'")
    app = Tenure(make_conninfo(server_dsn, dbname=name))

    @app.job(max_attempts=1)
    async def snow() -> str:
        return "\u2603"

    @app.job
    async def plain(n: int) -> str:
        return f"{n} \u00e9"

    try:
        await app.migrate()
        async with serving(app):
            bad = await snow.enqueue()
            handles = await app.enqueue_many([plain.call(n) for n in range(20)])
            assert [await handle.result(timeout=15) for handle in handles] == [f"{n} \u00e9" for n in range(20)]
            state = "dead_letter" if encoding == "LATIN1" else "completed"

            async def ended():
                return str((await bad.status()).state)

            await until(ended, is_=state)
        await app.close()
    finally:
        with psycopg.connect(server_dsn, autocommit=True) as admin:
            admin.execute(f"drop database {name} with (force)")


@pytest.mark.parametrize(
    ("dsn", "wanted"),
    [
        ("postgresql://a,b/shop", {"target_session_attrs": "read-write"}),
        ("postgresql://a:1,b:2/shop?target_session_attrs=any", {}),
        ("postgresql://a/shop", {}),
        ("host=a,b dbname=shop", {"target_session_attrs": "read-write"}),
        ("hostaddr=10.0.0.1,10.0.0.2 dbname=shop", {"target_session_attrs": "read-write"}),
    ],
)
def test_of_several_hosts_the_one_that_takes_writes_is_wanted(dsn, wanted, monkeypatch):
    monkeypatch.delenv("PGHOST", raising=False)
    monkeypatch.delenv("PGTARGETSESSIONATTRS", raising=False)
    assert target(dsn) == wanted


@contextmanager
def pooler_before(dsn, folder):
    pooler = Pooler(dsn, folder)
    pooler.start()
    try:
        yield pooler
    finally:
        pooler.kill()


@needs_pgbouncer
async def test_behind_a_pooler_a_setting_that_breaks_us_is_reported_with_the_statement_that_mends_it(fresh_dsn, tmp_path):
    with psycopg.connect(fresh_dsn, autocommit=True) as connection:
        [(name,)] = connection.execute("select current_database()").fetchall()
        connection.execute(f"alter database {name} set default_transaction_isolation = 'repeatable read'")
    with pooler_before(fresh_dsn, tmp_path) as pooler:
        await until(lambda: pooler.answers)
        place = DatabaseTarget.at(pooler.dsn, pooled=True)
        with pytest.raises(ConfigError, match=r"ALTER ROLE \S+ SET default_transaction_isolation = 'read committed'"):
            await check_settings(place)
        with pytest.raises(ConfigError, match="default_transaction_isolation is 'repeatable read'"):
            await Tenure(pooler.dsn, pooled=True).worker().start()
        # What runs in a transaction of several statements is right all the same.
        async with Link(place, "claim") as link, link.transaction():
            assert (await (await link._connection.execute("show transaction_isolation")).fetchone())[0] == "read committed"


@needs_pgbouncer
async def test_a_pooler_that_is_not_known_as_one_is_reported_with_the_way_out(fresh_dsn, tmp_path):
    with pooler_before(fresh_dsn, tmp_path) as pooler:
        await until(lambda: pooler.answers)
        async with Link(DatabaseTarget.at(pooler.dsn, pooled=False), "test") as link:
            with pytest.raises(Exception, match="set pooled = true"):
                await link.fetch(workers.extend([], 1))


def test_a_connection_without_an_event_loop_pins_the_same(hostile):
    link = SyncLink(DatabaseTarget.at(hostile), "enqueue")
    deadline = time.monotonic() + 30
    link.fetch(queues.notify("tenure", []), deadline=deadline)
    found = {name: link._connection.execute(f"show {name}").fetchone()[0] for name in PINNED}
    assert {name: value.lower() for name, value in found.items()} == {name: value.lower() for name, value in PINNED.items()}
    assert link._connection.info.encoding == "utf-8"
    assert link._connection.execute("show transaction_isolation").fetchone() == ("read committed",)
    link.close()


def test_code_without_an_event_loop_enqueues_in_spite_of_hostile_settings(hostile):
    app = Tenure(hostile)
    first = app.enqueue_sync("work", {"name": "ё"}, key="k")
    assert app.enqueue_sync("work", {"name": "ё"}, key="k").id == first.id
    app.close_sync()


def test_what_a_server_rejects_is_reported_by_its_name_without_the_password(dsn):
    refused = make_conninfo(dsn, dbname=f"nowhere_{uuid4().hex[:8]}", password="s3cret")
    with pytest.raises(StoreUnavailable) as caught:
        Tenure(refused).enqueue_sync("work", within=0.1)
    assert "does not exist" in str(caught.value)
    assert "s3cret" not in str(caught.value)
