"""A table of the user's own beside Tenure's, and handlers that stop where a test wants to look."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tenure import Tenure
from tests.store.clean import bare_dsn, database, dsn, fresh_dsn, other, shared_database, shared_dsn, sql
from tests.store.database import Database
from tests.transactions import handlers
from tests.transactions.points import Points, Shop

__all__ = ["bare_dsn", "database", "dsn", "fresh_dsn", "other", "shared_database", "shared_dsn", "sql"]


@pytest.fixture
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Points:
    monkeypatch.setenv(handlers.POINTS, str(tmp_path))
    return Points(tmp_path)


@pytest.fixture
def shop(database: Database) -> Iterator[Shop]:
    """Payments are the user's rows; two of one name are refused when the transaction commits, not before."""
    database.sql("create table public.payments (name text unique deferrable initially deferred)")
    yield Shop(database)
    database.sql("set lock_timeout = '5s'")
    database.sql("drop table public.payments")


@pytest.fixture
async def app(dsn: str, shop: Shop, points: Points, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Tenure]:
    """The app of `handlers`, which other processes import, too."""
    monkeypatch.setenv("TENURE_DSN", dsn)
    app = handlers.app
    app.configure()
    yield app
    await app.close()
