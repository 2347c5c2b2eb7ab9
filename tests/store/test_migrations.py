"""The schema is the same by whichever way it is made, and under any name."""

from __future__ import annotations

import asyncio

import pytest

from tenure import SchemaMismatch, StoreUnavailable, Tenure
from tenure.store.migrator import MigrationRefused, check_schema, find_state, migrate, migration_sql, migrations, newest_version
from tenure.store.target import DatabaseTarget
from tests.store.database import Database
from tests.store.later_migrations import NEWEST, later
from tests.waiting import until

__all__ = ["later"]

LABELS = [migration.label for migration in migrations()]
CATALOGUE = {
    "columns": """
        select table_name, column_name, ordinal_position, data_type, is_nullable, column_default
          from information_schema.columns where table_schema = %s order by 1, 3""",
    "indexes": "select tablename, indexname, indexdef from pg_indexes where schemaname = %s order by 1, 2",
    "constraints": """
        select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint
         where connamespace = %s::regnamespace order by 1, 2""",
    "functions": """
        select p.oid::regprocedure::text, pg_get_functiondef(p.oid) from pg_proc p
         where pronamespace = %s::regnamespace order by 1""",
    "options": "select relname, relkind::text, reloptions from pg_class where relnamespace = %s::regnamespace order by 1",
}


def catalogue(database: Database, schema: str) -> dict[str, list[tuple[object, ...]]]:
    return {what: database.sql(query, f'"{schema}"' if "regnamespace" in query else schema) for what, query in CATALOGUE.items()}


async def test_a_second_time_there_is_nothing_to_do(bare_dsn):
    place = DatabaseTarget.at(bare_dsn)
    told: list[str] = []
    assert await migrate(place, report=told.append) == LABELS
    assert told == LABELS
    assert await migrate(place) == []
    await check_schema(place)


async def test_phases_run_apart(bare_dsn):
    place = DatabaseTarget.at(bare_dsn)
    assert await migrate(place, phase="pre") == [label for label in LABELS if "_pre_" in label]
    await check_schema(place)
    assert await migrate(place, phase="post") == [label for label in LABELS if "_post_" in label]


async def test_of_many_migrators_at_once_each_migration_is_run_by_one(bare_dsn):
    ran = await asyncio.gather(*(migrate(DatabaseTarget.at(bare_dsn)) for _ in range(4)))
    assert sorted(label for labels in ran for label in labels) == sorted(LABELS)


async def test_the_printed_script_makes_the_same_schema(bare_dsn, fresh_dsn):
    with Database(bare_dsn) as by_hand, Database(fresh_dsn) as migrated:
        by_hand.connection.execute(migration_sql("tenure").encode(), prepare=False)
        ledger = "select version, phase, name from tenure.migrations order by 1, 2"
        assert by_hand.sql(ledger) == migrated.sql(ledger)
        assert catalogue(by_hand, "tenure") == catalogue(migrated, "tenure")
    assert await migrate(DatabaseTarget.at(bare_dsn)) == []


async def test_a_schema_of_another_name_works_from_end_to_end_and_leaves_nothing_elsewhere(bare_dsn):
    app = Tenure(bare_dsn, schema="My Jobs")

    @app.job
    async def double(n: int) -> int:
        return 2 * n

    assert await app.migrate() == LABELS
    await app.check()
    with Database(bare_dsn) as database:
        async with app.running():
            handle = await double.enqueue(21)
            later = await double.using(delay=0.05).enqueue(4)
            await until(lambda: database.sql('select count(*) from "My Jobs".history'), is_=[(2,)])
        assert ((await handle.status()).output, (await later.status()).output) == (42, 8)
        assert database.sql("select nspname from pg_namespace where nspname = 'tenure'") == []
        assert database.sql("select count(*) from pg_class where relnamespace = 'public'::regnamespace") == [(0,)]
        assert database.sql("select count(*) from pg_proc where prosrc ~ '\\mtenure\\.'") == [(0,)]
    await app.close()


async def test_two_schemas_live_side_by_side(fresh_dsn):
    first, second = Tenure(fresh_dsn), Tenure(fresh_dsn, schema="other")

    @first.job(name="work")
    async def _first() -> None: ...

    @second.job(name="work")
    async def work() -> None: ...

    await second.migrate()
    await work.enqueue()
    with Database(fresh_dsn) as database:
        assert database.sql("select (select count(*) from tenure.jobs), (select count(*) from other.jobs)") == [(0, 1)]
    await second.close()


async def test_without_a_schema_the_way_out_is_given(bare_dsn):
    with pytest.raises(SchemaMismatch, match="tenure migrate") as caught:
        await check_schema(DatabaseTarget.at(bare_dsn))
    assert (caught.value.found, caught.value.needed) == (None, newest_version())


async def test_an_older_schema_is_refused(fresh_dsn, later):
    later()
    await refused(fresh_dsn, found=NEWEST)


async def test_a_newer_schema_without_what_we_need_is_refused(fresh_dsn):
    with Database(fresh_dsn) as database:
        database.sql("insert into tenure.migrations values (9000, 'pre', 'x'), (9000, 'post', 'x')")
    await refused(fresh_dsn, found=9000)


async def refused(dsn: str, found: int) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        await check_schema(DatabaseTarget.at(dsn))
    assert caught.value.found == found
    with pytest.raises(SchemaMismatch):
        await Tenure(dsn).worker().start()


async def test_a_schema_with_other_migrations_of_the_same_numbers_is_refused(fresh_dsn):
    """As before the first release, when migrations were replaced: what they were to create is missing."""
    with Database(fresh_dsn) as database:
        database.sql("update tenure.migrations set name = 'core' where version = 1")
    await refused(fresh_dsn, found=NEWEST)
    target = DatabaseTarget.at(fresh_dsn)
    with pytest.raises(MigrationRefused, match=r"has migration 0001_pre_core, this code has 0001_pre_initial.*drop schema"):
        await migrate(target)
    by_label = {state.label: (state.applied_at is not None, state.known) for state in await find_state(target)}
    assert (by_label["0001_pre_core"], by_label["0001_pre_initial"]) == ((True, False), (False, True))


async def test_a_newer_schema_that_still_has_what_we_need_is_fine(fresh_dsn):
    with Database(fresh_dsn) as database:
        database.sql("insert into tenure.migrations values (9000, 'pre', 'x')")
    await check_schema(DatabaseTarget.at(fresh_dsn))


async def test_a_server_that_is_not_there_is_reported_as_such():
    with pytest.raises(StoreUnavailable):
        await check_schema(DatabaseTarget.at("postgresql://nobody@127.0.0.1:1/nothing"))


async def test_an_enqueue_without_a_schema_names_the_way_out(bare_dsn):
    app = Tenure(bare_dsn)

    @app.job
    async def work() -> None: ...

    with pytest.raises(SchemaMismatch, match="tenure migrate"):
        await work.enqueue()
    await app.close()
