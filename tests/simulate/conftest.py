"""A separate database for the tests that run the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.simulate.running import catalogue_on


@pytest.fixture(scope="module")
def catalogue_dsn(server_dsn: str, template: str) -> Iterator[str]:
    name = f"catalogue_{uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"create database {name} template {template}")
        dsn = make_conninfo(server_dsn, dbname=name)
        with catalogue_on(dsn):
            yield dsn
        admin.execute(f"drop database {name} with (force)")
