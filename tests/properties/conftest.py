"""A database of the test's own, under the injected clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.properties.bench import Bench
from tests.store.clean import fresh_dsn

__all__ = ["bench", "fresh_dsn"]


@pytest.fixture
def bench(fresh_dsn: str) -> Iterator[Bench]:
    with Bench(fresh_dsn) as bench:
        yield bench
