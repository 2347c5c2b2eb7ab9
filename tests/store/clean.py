"""One database for many tests, emptied before each: making a new one costs more than most tests do.

A conftest imports `dsn` from here to have it; `fresh_dsn` is still a database of the test's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from tests.planted_secrets import PASSWORD
from tests.store.database import Database, connect

LEFT_OVER = "select count(pg_terminate_backend(pid, 15000)) from pg_stat_activity where datname = %s and pid <> pg_backend_pid()"
EMPTY = """
    delete from tenure.workers;
    delete from tenure.leases;
    delete from tenure.queues;
    delete from tenure.limits;
    update tenure.limit_changes set version = 0;
    do $$
    declare
        name text;
    begin
        foreach name in array array[
            'jobs', 'claims', 'starts', 'keys', 'progress', 'logs', 'incidents', 'watches', 'tallies', 'counters',
            'minutes', 'fleet_minutes', 'latencies', 'retentions', 'schedules', 'ticks', 'declarations', 'kinds',
            'tokens', 'signing_keys', 'audit', 'blocked', 'blockers', 'chain_endings', 'steps', 'events', 'waits'
        ] loop
            -- Truncating makes new files for the table and for each of its indexes.
            if pg_relation_size('tenure.' || name) > 0 then
                execute 'truncate tenure.' || name;
            end if;
        end loop;
        -- Planning a delete from all partitions takes longer than everything else here.
        for name in select relid::regclass::text from pg_partition_tree('tenure.history') where isleaf loop
            if pg_relation_size(name) > 0 then
                execute 'delete from ' || name;
            end if;
        end loop;
    end
    $$;
    -- Of a test that failed before it dropped them.
    do $$
    declare
        command text;
    begin
        for command in select format('drop trigger %I on %s', t.tgname, t.tgrelid::regclass)
                         from pg_trigger t join pg_class c on c.oid = t.tgrelid
                        where not t.tgisinternal and c.relnamespace = 'tenure'::regnamespace and t.tgparentid = 0
                       union all
                       select format('alter database %I reset all', d.datname)
                         from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
                        where d.datname = current_database() loop
            execute command;
        end loop;
    end
    $$;
    alter table tenure.jobs reset (autovacuum_enabled);
    select setval('tenure.job_position', 1, false);
"""


@pytest.fixture(scope="session")
def shared_dsn(server_dsn: str, template: str) -> Iterator[str]:
    name = f"shared_test_{uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"create database {name} template {template}")
        yield make_conninfo(server_dsn, dbname=name, password=PASSWORD)
        admin.execute(f"drop database {name} with (force)")


class SharedDatabase:
    """The database, and a connection to it that stays open from test to test. To open one and to read the catalog on it takes the
    server several times as long as to empty the database."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._kept = connect(dsn)

    def empty(self) -> None:
        if self._kept.info.transaction_status != TransactionStatus.IDLE:
            self._kept.close()
        try:
            self._empty()
        except psycopg.OperationalError:  # closed here, or ended by the test before
            self._kept.close()
            self._kept = connect(self._dsn)
            self._empty()

    def _empty(self) -> None:
        self._kept.execute("discard all")
        self._kept.execute(LEFT_OVER, [self._kept.info.dbname])
        self._kept.execute(EMPTY.encode(), prepare=False)
        # The driver keeps what arrived between two calls of notifies(), also what the test before has caused.
        while list(self._kept.notifies(timeout=0)):
            pass
        if self._kept.info.server_version >= 150000:
            self._kept.execute("select pg_stat_force_next_flush()")  # pg_stat_xact_... begin at zero

    def connection_to(self, dsn: str) -> psycopg.Connection[Any] | None:
        """The one that stays open, as after connecting and for one user at a time. None: a test has put another database in
        place of this one, or the server cannot forget what the session has counted (before PostgreSQL 15)."""
        return self._kept if dsn == self._dsn and self._kept.info.server_version >= 150000 else None

    def close(self) -> None:
        self._kept.close()


@pytest.fixture(scope="session")
def shared_database(shared_dsn: str) -> Iterator[SharedDatabase]:
    shared = SharedDatabase(shared_dsn)
    yield shared
    shared.close()


@pytest.fixture
def dsn(shared_dsn: str, shared_database: SharedDatabase, threads_end: None) -> str:
    """A migrated and empty database."""
    shared_database.empty()
    return shared_dsn


@pytest.fixture
def fresh_dsn(server_dsn: str, template: str) -> Iterator[str]:
    """A migrated database of this test's own, for tests that change the schema or read statistics."""
    name = f"fresh_{uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"create database {name} template {template}")
        yield make_conninfo(server_dsn, dbname=name, password=PASSWORD)
        admin.execute(f"drop database {name} with (force)")


@pytest.fixture
def bare_dsn(server_dsn: str) -> Iterator[str]:
    """A database without anything of ours."""
    name = f"bare_{uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"create database {name}")
        yield make_conninfo(server_dsn, dbname=name, password=PASSWORD)
        admin.execute(f"drop database {name} with (force)")


@pytest.fixture
def database(dsn: str, shared_database: SharedDatabase) -> Iterator[Database]:
    with Database(dsn, connection=shared_database.connection_to(dsn)) as database:
        yield database


@pytest.fixture
def sql(
    dsn: str, shared_database: SharedDatabase, request: pytest.FixtureRequest
) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    """Runs SQL beside the product, and beside `database`: `sql("select ...", value, ...)`."""
    kept = None if "database" in request.fixturenames else shared_database.connection_to(dsn)
    with Database(dsn, connection=kept) as database:
        yield database.sql


@pytest.fixture
def other(dsn: str) -> Iterator[Database]:
    """A second connection, for what happens at the same time."""
    with Database(dsn) as database:
        yield database
