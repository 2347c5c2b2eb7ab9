"""The fixtures of tests that work on one shared, emptied database."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tenure import Tenure
from tenure.client.client import Client
from tests.store.clean import bare_dsn, database, dsn, fresh_dsn, other, shared_database, shared_dsn, sql

__all__ = ["bare_dsn", "database", "dsn", "fresh_dsn", "other", "shared_database", "shared_dsn", "sql"]


@pytest.fixture
async def client(app: Tenure) -> AsyncIterator[Client]:
    """To manage the jobs in the database."""
    yield app.client()
    await app.close()
