"""Interleaving two statements by hand."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

from tests.store.database import Database
from tests.waiting import until


async def waits_for_a_lock(database: Database, session: str = "%") -> None:
    """One of the sessions whose application name is like this."""
    waiting = (
        "select count(*) from pg_stat_activity"
        " where wait_event_type = 'Lock' and datname = current_database() and application_name like %s"
    )
    await until(lambda: database.sql(waiting, session)[0][0] > 0)


def meanwhile(work: Callable[[], Any]) -> Callable[[], Any]:
    """Runs it in a thread; gives what joins it and gives its result."""
    result: list[Any] = []
    thread = Thread(target=lambda: result.append(work()))
    thread.start()

    def joined() -> Any:
        thread.join()
        return result[0]

    return joined
