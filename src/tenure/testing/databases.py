"""Databases for tests: on a server of their own or on yours, migrated once, and emptied for each test within milliseconds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenure.app import Tenure
from tenure.model.errors import ConfigError
from tenure.store.target import DatabaseTarget
from tenure.store.test_databases import clear, new_database, prepare

SERVER = "TENURE_TEST_DSN"


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
            clean(app.settings.database)
            yield app
        finally:
            app.close_sync()


_prepared: set[DatabaseTarget] = set()


def clean(database: DatabaseTarget) -> None:
    """Empties Tenure's tables, after creating them if that is necessary."""
    if database not in _prepared:
        prepare(database)
        _prepared.add(database)
    clear(database)
