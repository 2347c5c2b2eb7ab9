"""Whether a connection of the caller's leads to the database that the app works with.

Two databases may both have the schema: then a job would be written where no worker looks. So both are asked once for their
identity, and the answer is kept for as long as the process lives. Where one of them cannot be asked, nothing is refused.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import MutableMapping
from typing import Any
from weakref import WeakKeyDictionary

from tenure.model.errors import ConfigError, SchemaMismatch, StoreUnavailable
from tenure.store import reports
from tenure.store.borrowed.base import Borrowed
from tenure.store.sync_link import SyncLink
from tenure.store.target import DatabaseTarget

PATIENCE = 5.0
"""Seconds for the question to the app's own database."""
ASK_AGAIN_AFTER = 60.0
"""Seconds after which an app's database that could not be asked is asked again."""

_own: dict[DatabaseTarget, tuple[str, float]] = {}
"""By database: the identity, and until when it is valid."""
_by_address: dict[Any, str] = {}
_by_object: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


async def check_database(borrowed: Borrowed, database: DatabaseTarget) -> None:
    """Raises `ConfigError` when the connection leads to another database than `database`."""
    source = await borrowed.source()
    answers = _answers(source)
    if source in answers and answers[source] == _known_own(database):
        return
    # Asked again before anything is refused: a database may have been dropped and created again under its name.
    own = await asyncio.to_thread(_ask_own, database)
    if own:
        answers[source] = _identity(await borrowed.fetch(reports.identify_database(), database.schema))
        _compare(own, answers[source], database)


def check_database_sync(borrowed: Borrowed, database: DatabaseTarget) -> None:
    source = borrowed.source_sync()
    answers = _answers(source)
    if source in answers and answers[source] == _known_own(database):
        return
    own = _ask_own(database)
    if own:
        answers[source] = _identity(borrowed.fetch_sync(reports.identify_database(), database.schema))
        _compare(own, answers[source], database)


def _known_own(database: DatabaseTarget) -> str | None:
    """Empty: it could not be asked."""
    identity, until = _own.get(database, ("", 0.0))
    return identity if time.monotonic() < until else None


def _ask_own(database: DatabaseTarget) -> str:
    if _known_own(database) == "":
        return ""  # not long ago
    link = SyncLink(database, "identify")
    identity, lasts = "", ASK_AGAIN_AFTER
    try:
        identity = _identity(link.fetch(reports.identify_database(), deadline=time.monotonic() + PATIENCE))
        lasts = float("inf")
    except (StoreUnavailable, SchemaMismatch):
        pass  # the next statement of the app on that database raises it
    finally:
        link.close()
    _own[database] = identity, time.monotonic() + lasts
    return identity


def _answers(source: object) -> MutableMapping[Any, str]:
    return _by_address if isinstance(source, tuple) else _by_object


def _identity(found: list[str | None]) -> str:
    return (found[0] or "") if found else ""


def _compare(own: str, found: str, database: DatabaseTarget) -> None:
    if found and found != own:
        raise ConfigError(
            f"this connection leads to another database than the app's own, which also has a schema {database.schema!r}: "
            "no worker of this app would find the job there; pass a connection to the app's database"
        )
