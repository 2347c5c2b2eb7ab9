from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.limits.limits_database import LimitsDatabase
from tests.store.clean import SharedDatabase, bare_dsn, dsn, fresh_dsn, shared_database, shared_dsn

__all__ = ["bare_dsn", "dsn", "fresh_dsn", "shared_database", "shared_dsn"]


@pytest.fixture
def database(dsn: str, shared_database: SharedDatabase) -> Iterator[LimitsDatabase]:
    with LimitsDatabase(dsn, connection=shared_database.connection_to(dsn)) as database:
        yield database


@pytest.fixture
def other(dsn: str) -> Iterator[LimitsDatabase]:
    with LimitsDatabase(dsn) as database:
        yield database


@pytest.fixture
async def app(app):
    yield app
    await app.close()
