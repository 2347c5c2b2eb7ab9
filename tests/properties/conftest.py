"""A database of the test's own, under the injected clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.properties.store_database import StoreDatabase
from tests.store.clean import fresh_dsn

__all__ = ["fresh_dsn", "store"]


@pytest.fixture
def store(fresh_dsn: str) -> Iterator[StoreDatabase]:
    with StoreDatabase(fresh_dsn) as store:
        yield store
