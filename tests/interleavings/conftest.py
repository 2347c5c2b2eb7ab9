"""One database and its sessions for all schedules of a test process."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.interleavings.stage import Stage
from tests.store.desk import Desk


@pytest.fixture(scope="session")
def stage(server_dsn: str, template: str) -> Iterator[Stage]:
    name = f"stage_{uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"create database {name} template {template}")
        with Stage(make_conninfo(server_dsn, dbname=name)) as stage:
            yield stage
        admin.execute(f"drop database {name} with (force)")


@pytest.fixture
def desk(dsn: str) -> Iterator[Desk]:
    with Desk(dsn) as desk:
        yield desk
