from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tenure import Tenure
from tests.store.clean import database, dsn, fresh_dsn, other, shared_database, shared_dsn, sql

__all__ = ["database", "dsn", "fresh_dsn", "other", "shared_database", "shared_dsn", "sql"]


@pytest.fixture
async def app(app: Tenure) -> AsyncIterator[Tenure]:
    yield app
    await app.close()
