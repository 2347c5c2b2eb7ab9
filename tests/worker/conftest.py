from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.clean import bare_dsn, dsn, fresh_dsn, shared_dsn
from tests.store.desk import Desk

__all__ = ["bare_dsn", "dsn", "fresh_dsn", "shared_dsn"]


@pytest.fixture
def desk(dsn: str) -> Iterator[Desk]:
    with Desk(dsn) as desk:
        yield desk


@pytest.fixture
def other(dsn: str) -> Iterator[Desk]:
    """A second connection, for what happens at the same time."""
    with Desk(dsn) as desk:
        yield desk
