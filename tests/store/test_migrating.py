"""What a migration waits for, refuses and reports. Whether the schema is right: test_migrations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from psycopg.conninfo import conninfo_to_dict

from tenure import SchemaMismatch, StoreUnavailable
from tenure.store import migrator
from tenure.store.migrator import MigrationBlocked, MigrationRefused, check_schema, find_state, migrate, migration_sql
from tenure.store.target import DatabaseTarget
from tests.store.database import Database
from tests.store.later_migrations import NEWEST, Later, later, later_label
from tests.store.test_migrations import LABELS, catalogue

__all__ = ["later"]

PRE_LATE, POST_LATE, INDEX = later_label("pre_late"), later_label("post_late"), later_label("pre_index")
PRE = [*(label for label in LABELS if "_pre_" in label), PRE_LATE]
POST = [*(label for label in LABELS if "_post_" in label), POST_LATE]


@pytest.fixture
def pre_only(bare_dsn: str, later: Later) -> Iterator[Database]:
    """A database between the two phases of its migrations."""
    later()
    asyncio.run(migrate(DatabaseTarget.at(bare_dsn), phase="pre"))
    with Database(bare_dsn) as database:
        yield database


async def test_all_of_the_first_phase_and_then_all_of_the_second_make_the_same_schema(bare_dsn, fresh_dsn, later):
    assert later() == PRE + POST
    for phase in ("pre", "post"):
        await migrate(DatabaseTarget.at(bare_dsn), phase=phase)
    assert await migrate(DatabaseTarget.at(fresh_dsn)) == [PRE_LATE, POST_LATE]
    with Database(bare_dsn) as apart, Database(fresh_dsn) as together:
        assert catalogue(apart, "tenure") == catalogue(together, "tenure")


async def test_a_dry_run_reports_what_would_run_and_changes_nothing(bare_dsn, later):
    place = DatabaseTarget.at(bare_dsn)
    assert later() == PRE + POST
    assert await migrate(place, dry_run=True) == PRE + POST
    assert await migrate(place, dry_run=True, phase="pre") == PRE
    with pytest.raises(SchemaMismatch):
        await check_schema(place)
    await migrate(place, phase="pre")
    assert await migrate(place, dry_run=True) == POST


async def test_an_error_of_a_callback_stops_no_migration_and_is_not_an_outage(bare_dsn):
    def closed(_: str) -> None:
        raise BrokenPipeError("no reader")

    with pytest.raises(BrokenPipeError, match="no reader"):
        await migrate(DatabaseTarget.at(bare_dsn), report=closed, warn=closed)
    await check_schema(DatabaseTarget.at(bare_dsn))
    assert await migrate(DatabaseTarget.at(bare_dsn)) == []


async def test_the_state_shows_what_is_applied_and_what_a_newer_version_did(pre_only, bare_dsn):
    found = await find_state(DatabaseTarget.at(bare_dsn))
    assert [one.label for one in found if one.applied_at is not None] == PRE
    assert [one.label for one in found if one.applied_at is None] == POST
    pre_only.sql("insert into tenure.migrations values (9000, 'pre', 'future')")
    assert [one.label for one in await find_state(DatabaseTarget.at(bare_dsn)) if not one.known] == ["9000_pre_future"]


def old_worker(database: Database, name: str = "old") -> str:
    """As a version that knew no schema version would have entered."""
    worker_id = database.worker()
    database.sql("update tenure.workers set schema_version = null, version = '0.0.9', name = %s where id = %s", name, worker_id)
    return worker_id


async def test_what_old_workers_need_is_not_removed_while_they_live(pre_only, bare_dsn):
    place = DatabaseTarget.at(bare_dsn)
    worker_id = old_worker(pre_only)
    pre_only.worker()
    with pytest.raises(MigrationRefused, match=r"1 workers: old \(0\.0\.9\) still run code of an older version.*--force"):
        await migrate(place, phase="post")
    told: list[str] = []
    assert await migrate(place, warn=told.append) == []
    assert "Run `tenure migrate --phase post` when they are gone" in told[0]
    await check_schema(place)
    pre_only.condemn(worker_id)
    assert await migrate(place, phase="post") == POST


async def test_it_is_removed_all_the_same_where_that_is_forced(pre_only, bare_dsn):
    old_worker(pre_only)
    told: list[str] = []
    assert await migrate(DatabaseTarget.at(bare_dsn), phase="post", force=True, warn=told.append) == POST
    assert "--force was given" in told[0]


async def test_workers_that_know_the_newest_version_hold_up_nothing(pre_only, bare_dsn):
    pre_only.worker()
    assert await migrate(DatabaseTarget.at(bare_dsn), phase="post") == POST


async def test_a_second_phase_without_its_first_is_refused(fresh_dsn, later):
    later()
    with pytest.raises(MigrationRefused, match=f"{POST_LATE} needs {PRE_LATE}"):
        await migrate(DatabaseTarget.at(fresh_dsn), phase="post")


async def test_a_version_may_have_no_second_phase(fresh_dsn, later):
    small = later_label("pre_small")
    later({small: "create table tenure.small (id int primary key);"})
    assert await migrate(DatabaseTarget.at(fresh_dsn), phase="pre") == [small]
    assert await migrate(DatabaseTarget.at(fresh_dsn)) == []
    await check_schema(DatabaseTarget.at(fresh_dsn))
    assert await migrate(DatabaseTarget.at(fresh_dsn), phase="post") == []


async def test_versions_that_were_skipped_add_everything_before_anything_is_removed(fresh_dsn, later):
    """The functions are those of the newest version: they must be there before what the old ones read is removed."""
    later()
    pre_next, post_next = later_label("pre_next", 2), later_label("post_next", 2)
    later({pre_next: "select count(late) from tenure.jobs;", post_next: "drop table tenure.late;"})
    assert await migrate(DatabaseTarget.at(fresh_dsn)) == [PRE_LATE, pre_next, POST_LATE, post_next]


# Outside a transaction

CONCURRENTLY = {
    INDEX: """-- outside a transaction
        -- An index on a big table; a retry begins again.
        drop index concurrently if exists tenure.jobs_late;
        create index concurrently jobs_late on tenure.jobs (id) where key is not null;
    """
}


def late_index(database: Database) -> list[tuple[bool]]:
    return database.sql("select indisvalid from pg_index where indexrelid = to_regclass('tenure.jobs_late')")


async def test_an_index_is_built_concurrently_and_recorded_with_the_functions(fresh_dsn, later):
    later(CONCURRENTLY)
    with Database(fresh_dsn) as database:
        database.sql("drop function tenure.backlog(text, boolean)")
        assert await migrate(DatabaseTarget.at(fresh_dsn)) == [INDEX]
        assert late_index(database) == [(True,)]
        assert database.sql("select tenure.backlog()") == [(0,)]
    assert await migrate(DatabaseTarget.at(fresh_dsn)) == []


async def test_of_many_migrators_at_once_one_builds_the_index_and_none_waits_for_another_for_ever(fresh_dsn, later):
    later(CONCURRENTLY)
    async with asyncio.timeout(60):
        ran = await asyncio.gather(*(migrate(DatabaseTarget.at(fresh_dsn)) for _ in range(4)))
    assert sorted(ran) == [[], [], [], [INDEX]]


async def test_an_index_that_could_not_be_built_is_built_by_the_next_attempt(fresh_dsn, later, impatient, monkeypatch):
    """A transaction that is older holds it up; what the attempt left behind is invalid."""
    later(CONCURRENTLY)
    monkeypatch.setattr(migrator, "OUTSIDE_LOCK_TIMEOUT", 1.5)
    with Database(fresh_dsn, application_name="nightly_backup") as idler, Database(fresh_dsn) as database:
        idler.sql("begin; lock table tenure.jobs in row exclusive mode")
        with pytest.raises(MigrationBlocked, match=rf"{INDEX} needs a lock that session .* \(nightly_backup, user "):
            await migrate(DatabaseTarget.at(fresh_dsn), warn=lambda _: None)
        assert late_index(database) == [(False,)]
        idler.sql("rollback")
        assert await migrate(DatabaseTarget.at(fresh_dsn)) == [INDEX]
        assert late_index(database) == [(True,)]


def test_the_printed_script_leaves_the_transaction_for_it(later):
    later(CONCURRENTLY)
    lines = [line.strip() for line in migration_sql("tenure", after=NEWEST).splitlines()]
    script = [
        line
        for line in lines
        if line in ("begin;", "commit;") or line.startswith(("-- 00", "create index", "insert into tenure.migr"))
    ]
    assert [line.split(" on ")[0].split(" (")[0] for line in script] == [
        "begin;",
        "commit;",
        f"-- {INDEX}",
        "create index concurrently jobs_late",
        "begin;",
        "insert into tenure.migrations",
        "commit;",
    ]


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(migrator, "LOCK_TIMEOUT", 1.5)
    monkeypatch.setattr(migrator, "ATTEMPTS", 2)


async def test_the_holder_of_the_lock_is_named_and_the_migration_is_retried(pre_only, bare_dsn, impatient):
    told: list[str] = []
    with Database(bare_dsn, application_name="nightly_backup") as idler:
        pid = idler.connection.info.backend_pid
        with idler.connection.transaction():
            idler.sql("select count(*) from tenure.jobs")
            with pytest.raises(MigrationBlocked) as blocked:
                await migrate(DatabaseTarget.at(bare_dsn), phase="post", warn=told.append)
    words = str(blocked.value)
    assert f"session {pid} (nightly_backup, user " in words
    assert "idle in transaction for" in words
    assert "pg_terminate_backend" in words
    assert "cannot be reached" not in words
    assert "select count" not in words
    assert len(told) == 1
    assert "trying again (2 of 2)" in told[0]
    assert (await migrate(DatabaseTarget.at(bare_dsn), phase="post"))[-1] == POST[-1]


async def test_a_lock_that_is_released_meanwhile_costs_a_warning_only(pre_only, bare_dsn, impatient):
    told: list[str] = []
    with Database(bare_dsn) as idler:
        idler.sql("begin; select count(*) from tenure.jobs")

        def release(words: str) -> None:
            told.append(words)
            idler.sql("rollback")

        assert await migrate(DatabaseTarget.at(bare_dsn), phase="post", warn=release) == POST
    assert len(told) == 1


async def test_settings_of_the_database_do_not_end_a_migration_half_way(bare_dsn):
    name = conninfo_to_dict(bare_dsn)["dbname"]
    with Database(bare_dsn) as database:
        for setting in (
            "statement_timeout = '5ms'",
            "lock_timeout = '1ms'",
            "default_transaction_isolation = 'serializable'",
            "default_transaction_read_only = on",
        ):
            database.sql(f"alter database {name} set {setting}")
    assert await migrate(DatabaseTarget.at(bare_dsn)) == LABELS


async def test_a_refusal_of_a_server_that_is_there_is_not_called_out_of_reach(bare_dsn, monkeypatch):
    monkeypatch.setattr(migrator, "_PINNED", "set transaction read only;")
    with pytest.raises(StoreUnavailable, match=r"this PostgreSQL is read-only: .*read-only transaction"):
        await migrate(DatabaseTarget.at(bare_dsn))


async def test_a_database_without_a_schema_is_named(bare_dsn):
    name = conninfo_to_dict(bare_dsn)["dbname"]
    with pytest.raises(
        SchemaMismatch, match=f"this is database '{name}' on .*; if that is the right database, run `tenure migrate`"
    ):
        await check_schema(DatabaseTarget.at(bare_dsn))


async def test_a_schema_of_another_name_is_found_and_no_migration_is_advised(fresh_dsn):
    with pytest.raises(
        SchemaMismatch, match="has Tenure in schema 'tenure', not in 'other': correct the setting `schema`"
    ) as caught:
        await check_schema(DatabaseTarget.at(fresh_dsn, schema="other"))
    assert "tenure migrate" not in str(caught.value)


async def test_the_printed_phases_make_the_same_schema_inside_a_transaction_of_the_caller(bare_dsn, fresh_dsn):
    with Database(bare_dsn) as by_hand, Database(fresh_dsn) as migrated:
        with by_hand.connection.transaction():
            for phase in ("pre", "post"):
                script = migration_sql("tenure", phase=phase, transaction=False)
                by_hand.connection.execute(script.encode(), prepare=False)
        assert catalogue(by_hand, "tenure") == catalogue(migrated, "tenure")
    assert "commit;" not in migration_sql("tenure", transaction=False)
    assert migration_sql("tenure").startswith("begin;")


def test_the_printed_script_can_be_limited_to_later_versions_and_a_phase(later):
    later()
    script = migration_sql("tenure", after=NEWEST, phase="post")
    assert [line for line in script.splitlines() if line.startswith("-- 00")] == [f"-- {POST_LATE}"]


@pytest.mark.slow
@pytest.mark.parametrize("table", ["workers", "migrations"])
async def test_a_lock_that_hides_a_table_from_the_plan_is_reported_with_its_holder(pre_only, bare_dsn, impatient, table):
    told: list[str] = []
    with Database(bare_dsn, application_name="nightly_backup") as idler:
        idler.sql(f"begin; lock table tenure.{table} in access exclusive mode")
        with pytest.raises(MigrationBlocked, match=r"session .* \(nightly_backup, user "):
            await migrate(DatabaseTarget.at(bare_dsn), phase="post", warn=told.append)
    assert "trying again (2 of 2)" in told[0]
    assert (await migrate(DatabaseTarget.at(bare_dsn), phase="post"))[-1] == POST[-1]
