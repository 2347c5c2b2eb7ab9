"""One database and its sessions for all schedules of a test process."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.interleavings.interleaved_database import InterleavedDatabase
from tests.store.database import Database


@pytest.fixture(scope="session")
def interleaved(server_dsn: str, template: str) -> Iterator[InterleavedDatabase]:
    name = f"stage_{uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"create database {name} template {template}")
        with InterleavedDatabase(make_conninfo(server_dsn, dbname=name)) as interleaved:
            yield interleaved
        admin.execute(f"drop database {name} with (force)")


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    with Database(dsn) as database:
        yield database
