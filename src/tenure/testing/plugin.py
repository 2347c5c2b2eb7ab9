"""The pytest plugin: fixtures for a database and an app that is connected to it. Imports nothing before a fixture is used.

Set `tenure_app = shop.jobs:app` in pytest's configuration, or define a fixture `tenure_app_object`. To use a database of
your own, define a session fixture `tenure_dsn`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tenure.app import Tenure
    from tenure.inprocess import InProcessWorker
    from tenure.testing.recorder import Recorder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("tenure_app", "The app under test, as module:attribute", default="")


@pytest.fixture(scope="session")
def tenure_server(pytestconfig: pytest.Config) -> Iterator[str]:
    """The DSN of a PostgreSQL server: `TENURE_TEST_DSN`, or an embedded one, which all test processes share."""
    from tenure.testing.databases import database_server  # noqa: PLC0415

    cache: pytest.Cache | None = getattr(pytestconfig, "cache", None)  # missing with `-p no:cacheprovider`
    with database_server(None if cache is None else cache.mkdir("tenure")) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def tenure_dsn(tenure_server: str) -> Iterator[str]:
    """The DSN of a migrated database of this test process. Override it to use a database of your own."""
    from tenure.testing.databases import temporary_database  # noqa: PLC0415

    with temporary_database(tenure_server) as dsn:
        yield dsn


@pytest.fixture
def tenure_app_object(pytestconfig: pytest.Config) -> Tenure:
    """The app that `tenure_app` in pytest's configuration names."""
    from tenure.manager.loading import load_app  # noqa: PLC0415
    from tenure.model.errors import ConfigError  # noqa: PLC0415

    path = str(pytestconfig.getini("tenure_app"))
    if not path:
        raise ConfigError("which app is under test? Set `tenure_app = shop.jobs:app` in pytest's configuration")
    return load_app(path, str(pytestconfig.rootpath))


@pytest.fixture
def tenure_app(tenure_app_object: Tenure, tenure_dsn: str) -> Iterator[Tenure]:
    """The app under test, connected to the test database. Each test begins without jobs, keys, schedules and limits."""
    from tenure.testing.databases import bound  # noqa: PLC0415

    with bound(tenure_app_object, tenure_dsn) as app:
        yield app


@pytest.fixture
def tenure_worker(tenure_app: Tenure) -> Iterator[InProcessWorker]:
    """A worker that runs the app's jobs, in a thread."""
    from tenure.testing.background import running_worker  # noqa: PLC0415

    with running_worker(tenure_app) as worker:
        yield worker


@pytest.fixture
def tenure_recorder(tenure_app_object: Tenure) -> Iterator[Recorder]:
    """Records what the app enqueues, without a database."""
    from tenure.testing.recorder import Recorder  # noqa: PLC0415

    with Recorder(tenure_app_object) as recorder:
        yield recorder
