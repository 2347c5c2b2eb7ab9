"""What can be passed as a connection, and what it costs."""

from __future__ import annotations

import json
import sys

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session, sessionmaker

from tenure.model.errors import ConfigError
from tenure.store.borrowed import Borrowed, borrow
from tests.processes import run_process

UNDERSTOOD = [
    "psycopg Connection",
    "AsyncConnection",
    "asyncpg Connection",
    "SQLAlchemy Session",
    "scoped_session",
    "AsyncSession",
    "async_scoped_session",
    "django.db.connection",
]


class Connection:
    """Has the name only."""


@pytest.mark.parametrize(
    "given",
    [None, "postgresql://", Connection(), object(), create_engine("sqlite://"), sessionmaker(), Session, psycopg.Connection],
)
def test_anything_else_is_refused_with_all_that_is_understood(given):
    with pytest.raises(ConfigError) as error:
        borrow(given)
    assert type(given).__name__ in str(error.value)
    for kind in UNDERSTOOD:
        assert kind in str(error.value)


def test_a_subclass_of_the_callers_is_understood():
    class OwnSession(Session):
        pass

    with OwnSession() as session:
        assert isinstance(borrow(session), Borrowed)


def test_no_driver_is_imported_that_the_caller_does_not_use():
    foreign = ["asyncpg", "sqlalchemy", "django"]
    script = f"import json, sys, tenure.store.borrowed; print(json.dumps([m for m in {foreign} if m in sys.modules]))"
    run = run_process([sys.executable, "-c", script], check=True, timeout=60)
    assert json.loads(run.stdout) == []
