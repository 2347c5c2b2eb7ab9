"""The web app on a real server on loopback, on one emptied database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tenure import Context, Tenure
from tests.store.clean import bare_dsn, database, dsn, fresh_dsn, other, shared_database, shared_dsn
from tests.web.serving import Serving

__all__ = ["bare_dsn", "database", "dsn", "fresh_dsn", "other", "shared_database", "shared_dsn"]


@pytest.fixture
def sql(database) -> Callable[..., list[tuple[Any, ...]]]:
    return database.sql


@pytest.fixture
async def serving(app: Tenure) -> AsyncIterator[Serving]:
    """Servers of this test, and clients for them."""
    serving = Serving(app)
    yield serving
    await serving.close()
    await app.close()


@pytest.fixture
def jobs(app: Tenure) -> Tenure:
    """The app, with jobs."""

    @app.job(queue="exports")
    async def export_users(ctx: Context, format: str, rows: int = 10) -> dict[str, int]:  # noqa: A002 - as in the seed
        """Exports all users."""
        ctx.progress(50, "half of it")
        return {format: rows}

    @app.job(max_attempts=1)
    async def burn(why: str) -> None:
        raise ValueError(why)

    @app.job(key="payment_id")
    async def charge(payment_id: str, cents: int = 0) -> int:
        return cents

    return app


@pytest.fixture
async def app_without_jobs(dsn: str) -> AsyncIterator[Tenure]:
    """Another app on the same database, which defines no jobs."""
    app = Tenure(dsn)
    yield app
    await app.close()
