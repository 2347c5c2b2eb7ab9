"""The transaction that is open where a job is enqueued, as the app's framework knows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Joined(NamedTuple):
    """The call was part of an open transaction."""

    result: object


class AmbientTransaction(Protocol):
    """Jobs become part of it, unless the call names a connection. An app without a framework has none."""

    def connection(self) -> object | None:
        """The connection of this thread, if a transaction is open on it. For code without an event loop."""

    async def join(self, call: Callable[[], object]) -> Joined | None:
        """Runs `call` in the thread that has the transaction of this task. None: there is no transaction, and it was not
        run."""
