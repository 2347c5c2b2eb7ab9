from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.store.borrowed.callers import CALLERS, Caller


@pytest.fixture
def orders(dsn: str, sql: Callable[..., Any]) -> Iterator[Callable[[], list[str]]]:
    """A table of the caller's, and what everyone can see of it."""
    sql("create table public.orders (name text unique deferrable initially immediate)")
    yield lambda: [name for (name,) in sql("select name from public.orders order by name")]
    # The next test ends any connection that still holds the table.
    sql("set lock_timeout = '5s'")
    sql("drop table public.orders")


@pytest.fixture
def kinds(sql: Callable[..., Any]) -> Callable[[], list[str]]:
    """The jobs that everyone can see."""
    return lambda: [kind for (kind,) in sql("select kind from tenure.all_jobs order by kind")]


@pytest.fixture
def opened(orders: Any, dsn: str) -> Iterator[Callable[[type[Caller]], Caller]]:
    callers: list[Caller] = []

    def opened(kind: type[Caller]) -> Caller:
        callers.append(kind(dsn))
        return callers[-1]

    yield opened
    for caller in callers:
        caller.close()


@pytest.fixture(params=CALLERS, ids=lambda kind: kind.__name__)
def caller(request: pytest.FixtureRequest, opened: Callable[[type[Caller]], Caller]) -> Caller:
    return opened(request.param)


@pytest.fixture(params=CALLERS, ids=lambda kind: kind.__name__)
def ender(request: pytest.FixtureRequest, opened: Callable[[type[Caller]], Caller]) -> Caller:
    """A caller whose transaction the adapter can end."""
    return opened(request.param)
