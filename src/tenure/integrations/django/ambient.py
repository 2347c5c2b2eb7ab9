"""Jobs that are enqueued inside of `transaction.atomic()` are part of that transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections

from tenure.client.ambient import Joined
from tenure.integrations.django.conf import ProjectSettings
from tenure.model.current import current_run


class AtomicBlocks:
    """The transactions that Django has open on the database of the jobs."""

    def __init__(self, project: Callable[[], ProjectSettings]) -> None:
        self._project = project

    def connection(self) -> Any:
        project = self._project()
        if not project.enqueue_in_transaction:
            return None
        connection = connections[project.database]
        return connection if connection.in_atomic_block or _manual_transaction(connection) else None

    async def join(self, call: Callable[[], object]) -> Joined | None:
        """Coroutines have no transactions of their own, but may run inside one of their thread: that of a `TestCase`. The
        asynchronous ORM uses that thread, too. A coroutine handler has none: its run has just begun."""
        if current_run.get() is not None or not self._project().enqueue_in_transaction:
            return None
        joined: Joined | None = await sync_to_async(self._join_here)(call)
        return joined

    def _join_here(self, call: Callable[[], object]) -> Joined | None:
        return None if self.connection() is None else Joined(call())


def _manual_transaction(connection: Any) -> bool:
    """After `set_autocommit(False)` every statement is part of a transaction that the caller commits."""
    return connection.connection is not None and not connection.autocommit
