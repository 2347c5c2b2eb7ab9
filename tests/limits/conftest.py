from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.limits.gatework import GateDesk
from tests.store.clean import bare_dsn, dsn, fresh_dsn, shared_dsn

__all__ = ["bare_dsn", "dsn", "fresh_dsn", "shared_dsn"]


@pytest.fixture
def desk(dsn: str) -> Iterator[GateDesk]:
    with GateDesk(dsn) as desk:
        yield desk


@pytest.fixture
def other(dsn: str) -> Iterator[GateDesk]:
    with GateDesk(dsn) as desk:
        yield desk


@pytest.fixture
async def app(app):
    yield app
    await app.close()
