"""Databases for tests: on a server of their own or on yours, migrated once, and emptied for each test within milliseconds."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from tenure.app import Tenure
from tenure.model.errors import ConfigError
from tenure.store.target import DatabaseTarget
from tenure.store.test_databases import clear, new_database, prepare

SERVER = "TENURE_TEST_DSN"

LEFT_OPEN = (
    "It has enqueued jobs, and a job with the same key would wait for it: end the transaction in the test that began it, for "
    "example by closing its connection"
)


@contextmanager
def database_server(folder: Path | str | None = None) -> Iterator[str]:
    """The DSN of a PostgreSQL server on which databases may be created: `TENURE_TEST_DSN`, or an embedded one in `folder`.

    Processes that give the same folder share the server. It does not survive a crash of the machine, and is faster for that.
    """
    if given := os.environ.get(SERVER):
        yield given
        return
    from tenure.embedded import EmbeddedServer  # noqa: PLC0415 - not needed with a server of the caller's

    home = Path(tempfile.gettempdir()) / f"tenure-tests-{os.getuid()}" if folder is None else Path(folder)
    home.mkdir(mode=0o711, parents=True, exist_ok=True)
    try:
        server = EmbeddedServer(home, durable=False).start()
    except ConfigError as error:
        raise ConfigError(
            f"{error}. To test with a server of your own, set {SERVER}; its user must be allowed to create databases"
        ) from None
    try:
        yield server.dsn
    finally:
        server.stop()


@contextmanager
def temporary_database(server: str | None = None) -> Iterator[str]:
    """The DSN of a new database, migrated and empty. It is dropped at the end. `server`: by default `database_server()`."""
    if server is not None:
        with new_database(server) as dsn:
            yield dsn
        return
    with database_server() as own, new_database(own) as dsn:
        yield dsn


@contextmanager
def bound(app: Tenure, dsn: str) -> Iterator[Tenure]:
    """Connects an app to a test database, and empties Tenure's tables there. At the end the app has its own settings again.

    The database must have `test` in its name, because its jobs are deleted. It is migrated if it has no schema yet.
    """
    with app._configured(dsn=dsn):  # noqa: SLF001 - this package is part of the product
        try:
            _refuse_second_import(app)
            _warn_of_open_transactions(app, clean(app.settings.database))
            yield app
        finally:
            app.close_sync()


_prepared: set[DatabaseTarget] = set()


def clean(database: DatabaseTarget) -> list[str]:
    """Empties Tenure's tables, after creating them if that is necessary. Returns what it could not reach: see `clear`."""
    if database not in _prepared:
        prepare(database)
        _prepared.add(database)
    return clear(database)


def _warn_of_open_transactions(app: Tenure, sessions: list[str]) -> None:
    ambient = app._runtime.ambient  # noqa: SLF001
    if ambient is not None and ambient.connection() is not None:
        return  # a TestCase of Django, which has enqueued in `setUpTestData`
    for session in sessions:
        warnings.warn(f"{session}. {LEFT_OPEN}", RuntimeWarning, stacklevel=2)


def _refuse_second_import(app: Tenure) -> None:
    """A module that is imported under two names has two apps, and what the other one enqueues would go to another database."""
    home = app.kinds.home
    file = getattr(sys.modules.get(home or ""), "__file__", None)
    if file is None or home == "__main__":
        return
    for name, module in list(sys.modules.items()):
        if name != home and getattr(module, "__file__", None) == file and _has_own_app(module, name):
            raise ConfigError(
                f"{file} is imported twice, as {home!r} and as {name!r}, so there are two apps, and only that of {home!r} is "
                "connected to the test database: import it under one name everywhere"
            )


def _has_own_app(module: ModuleType, name: str) -> bool:
    return any(isinstance(value, Tenure) and value.kinds.home == name for value in vars(module).values())
