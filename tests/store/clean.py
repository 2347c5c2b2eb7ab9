"""One database for many tests, emptied before each: making a new one costs more than most tests do.

A conftest imports `dsn` from here to have it; `fresh_dsn` is still a database of the test's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.planted_secrets import PASSWORD
from tests.store.database import Database

LEFT_OVER = "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity where datname = %s and pid <> pg_backend_pid()"
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


@pytest.fixture
def dsn(shared_dsn: str, threads_end: None) -> str:
    """A migrated and empty database."""
    with psycopg.connect(shared_dsn, autocommit=True) as connection:
        connection.execute(LEFT_OVER, [conninfo_to_dict(shared_dsn)["dbname"]])
        connection.execute(EMPTY.encode(), prepare=False)
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
def database(dsn: str) -> Iterator[Database]:
    with Database(dsn) as database:
        yield database


@pytest.fixture
def other(dsn: str) -> Iterator[Database]:
    """A second connection, for what happens at the same time."""
    with Database(dsn) as database:
        yield database
