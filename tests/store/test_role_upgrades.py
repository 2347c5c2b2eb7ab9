"""Roles outlive upgrades: the owner of the schema can repeat the script, and objects of later versions are granted as well."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tenure import SchemaMismatch, Tenure
from tenure.store.migrator import MigrationRefused, apply_roles, migrate, roles_sql
from tenure.store.target import DatabaseTarget
from tests.store.database import Database
from tests.store.later_migrations import later, later_label

__all__ = ["later"]

ROLES = ("tenure_worker", "tenure_enqueue", "tenure_read")
LOGINS = ("shop_owner", "shop_admin", "shop_worker", "shop_reader")


@pytest.fixture
def server(server_dsn: str) -> Iterator[Database]:
    """No role of ours is there, and no other test makes one meanwhile: roles belong to the whole server."""
    with Database(server_dsn, statement_timeout="0") as database:
        database.sql("select pg_advisory_lock(hashtext('the roles of tenure'))")
        drop_roles(database, [])
        yield database


def drop_roles(database: Database, dsns: list[str]) -> None:
    there = [name for (name,) in database.sql("select rolname from pg_roles where rolname = any(%s)", [*ROLES, *LOGINS])]
    for dsn in dsns:
        with Database(dsn) as inside:
            inside.sql("drop schema if exists tenure cascade")
            for role in there:
                inside.sql(f"drop owned by {role}")
    for role in there:
        database.sql(f"drop role {role}")


@pytest.fixture
def shop(server: Database, bare_dsn: str) -> Iterator[str]:
    """A database that belongs to an account without CREATEROLE, as cloud providers and careful administrators have it."""
    name = conninfo_to_dict(bare_dsn)["dbname"]
    server.sql("create role shop_owner login; create role shop_admin login createrole; create role shop_worker login")
    server.sql(f"alter database {name} owner to shop_owner; revoke create on database {name} from public")
    yield bare_dsn
    server.sql(f"alter database {name} owner to current_user")
    drop_roles(server, [bare_dsn])


def of(dsn: str, user: str) -> DatabaseTarget:
    return DatabaseTarget.at(make_conninfo(dsn, user=user))


def run_script(dsn: str, user: str, script: str) -> list[str]:
    """What psql would do with it; gives the notices."""
    notices: list[str] = []
    with psycopg.connect(make_conninfo(dsn, user=user), autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        connection.execute(script.encode())
    return notices


LATE = {later_label("pre_late"): "create table tenure.late (id bigserial primary key, what text);"}


async def test_the_script_can_be_repeated_and_a_later_migration_is_open_to_the_same_roles(shop, server, later):
    await migrate(of(shop, "shop_owner"))
    run_script(shop, "shop_admin", roles_sql("tenure", "create"))
    for _ in range(2):
        run_script(shop, "shop_owner", roles_sql("tenure", "grants"))
    server.sql("grant tenure_worker to shop_worker")
    later(LATE)
    assert await migrate(of(shop, "shop_owner")) == list(LATE)
    with Database(make_conninfo(shop, user="shop_worker")) as worker:
        worker.sql("insert into tenure.late (what) values ('x')")
        worker.sql("set role tenure_worker; select * from tenure.late")


async def test_a_function_of_a_later_version_is_open_to_workers_and_not_to_public(shop, later):
    await migrate(of(shop, "shop_owner"))
    await apply_roles(DatabaseTarget.at(shop))
    with Database(shop) as database:
        database.sql("drop function tenure.same_app(text[], text[])")
        database.sql("grant execute on function tenure.backlog(text, boolean) to public")
        later(LATE)
        await migrate(of(shop, "shop_owner"))
        may = "select has_function_privilege(%s, %s, 'execute')"
        assert [database.sql(may, role, "tenure.same_app(text[], text[])") for role in ROLES] == [
            [(True,)],
            [(False,)],
            [(False,)],
        ]
        # What was granted by hand to a function that existed is left alone.
        assert database.sql(may, "tenure_enqueue", "tenure.backlog(text, boolean)") == [(True,)]


async def test_a_role_that_could_enqueue_before_clients_called_enqueue_one_can_still_enqueue(shop, later):
    await migrate(of(shop, "shop_owner"))
    await apply_roles(DatabaseTarget.at(shop))
    with Database(shop) as database:
        database.sql("revoke execute on function tenure.enqueue_one(jsonb) from tenure_enqueue")
        later(LATE)
        await migrate(of(shop, "shop_owner"))
        may = "select has_function_privilege(%s, 'tenure.enqueue_one(jsonb)', 'execute')"
        assert [database.sql(may, role) for role in ROLES] == [[(True,)], [(True,)], [(False,)]]


async def test_a_worker_of_that_role_runs_jobs_and_has_nothing_to_migrate(shop, server):
    await migrate(of(shop, "shop_owner"))
    run_script(shop, "shop_admin", roles_sql("tenure", "create"))
    run_script(shop, "shop_owner", roles_sql("tenure", "grants"))
    server.sql("grant tenure_worker to shop_worker")
    app = Tenure(make_conninfo(shop, user="shop_worker"))

    @app.job
    async def double(n: int) -> int:
        return 2 * n

    assert await app.migrate() == []
    async with app.running():
        assert await (await double.enqueue(21)).result(20) == 42
    await app.close()


async def test_an_administrator_who_is_not_a_superuser_grants_for_the_owner_of_the_schema(shop, server, later):
    """What the default privileges of the administrator alone would not do."""
    await migrate(of(shop, "shop_owner"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="belongs to shop_owner") as refused:
        run_script(shop, "shop_admin", roles_sql("tenure"))
    assert "grant shop_owner to shop_admin" in str(refused.value)
    server.sql("grant shop_owner to shop_admin")
    run_script(shop, "shop_admin", roles_sql("tenure"))
    server.sql("grant tenure_worker to shop_worker")
    later(LATE)
    await migrate(of(shop, "shop_owner"))
    with Database(make_conninfo(shop, user="shop_worker")) as worker:
        assert worker.sql("select count(*) from tenure.late") == [(0,)]


async def test_an_owner_who_may_not_create_roles_learns_who_runs_what(shop):
    await migrate(of(shop, "shop_owner"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="role tenure_worker is missing") as refused:
        run_script(shop, "shop_owner", roles_sql("tenure"))
    assert "--part create" in str(refused.value)
    assert "--part grants" in str(refused.value)


async def test_what_other_sessions_do_is_seen_where_the_server_allows_it(shop, server):
    await migrate(of(shop, "shop_owner"))
    notices = run_script(shop, "shop_admin", roles_sql("tenure", "create"))
    if server.connection.info.server_version >= 160000:  # before, CREATEROLE was enough for that
        assert any("pg_read_all_stats is not granted" in notice for notice in notices)
    await apply_roles(DatabaseTarget.at(shop))  # as a superuser
    granted = "select pg_has_role(%s, 'pg_read_all_stats', 'usage')"
    assert [server.sql(granted, role) for role in ROLES] == [[(True,)], [(False,)], [(True,)]]


async def test_a_role_that_may_not_migrate_learns_which_role_may(shop, server):
    server.sql("create role shop_reader login")
    with pytest.raises(MigrationRefused, match=r"'shop_reader' may not run 0001_pre_initial .* as the owner of schema 'tenure'"):
        await migrate(of(shop, "shop_reader"))
    with pytest.raises(SchemaMismatch):
        await Tenure(make_conninfo(shop, user="shop_reader")).check()
