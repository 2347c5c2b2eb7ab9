"""The connections that an app's client holds open, each made at first use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from tenure.client.portal import Portal
from tenure.model.reruns import refuse_in_rerun

# The driver is slow to import: what needs it is imported when it is first used.
if TYPE_CHECKING:
    from tenure.client.direct import DirectEnqueuer
    from tenure.client.session import Session
    from tenure.store.target import DatabaseTarget
    from tenure.store.wakeups import Wakeups


class Connections:
    """A session for each event loop, and one connection for code without an event loop."""

    def __init__(self, database: Callable[[], DatabaseTarget], notify_within: Callable[[], float]) -> None:
        self._database = database
        self._notify_within = notify_within
        self.portal = Portal()
        self.sessions: dict[asyncio.AbstractEventLoop, Session] = {}
        self._wakeups: dict[tuple[asyncio.AbstractEventLoop, DatabaseTarget], Wakeups] = {}

    def session(self) -> Session:
        """The session of the running event loop."""
        refuse_in_rerun()
        loop = asyncio.get_running_loop()
        session = self.sessions.get(loop)
        if session is None:
            from tenure.client.session import Session  # noqa: PLC0415

            session = self.sessions[loop] = Session(self._database(), self.wakeups(), ended=lambda: self.sessions.pop(loop, None))
        return session

    @cached_property
    def direct(self) -> DirectEnqueuer:
        """Enqueues without an event loop."""
        refuse_in_rerun()
        from tenure.client.direct import DirectEnqueuer  # noqa: PLC0415

        return DirectEnqueuer(self._database())

    def wakeups(self) -> Wakeups:
        """One LISTEN and one NOTIFY connection, shared by the client and the workers of an event loop."""
        from tenure.store.wakeups import Wakeups  # noqa: PLC0415

        database = self._database()
        key = asyncio.get_running_loop(), database
        if key not in self._wakeups:
            self._wakeups[key] = Wakeups(database, within=self._notify_within(), ended=lambda: self._wakeups.pop(key, None))
        return self._wakeups[key]

    def share(self, wakeups: Wakeups) -> None:
        """Makes the client in the running event loop use these wake-ups instead of connections of its own."""
        self._wakeups[asyncio.get_running_loop(), self._database()] = wakeups

    def forget_direct(self) -> None:
        """After a change of settings: the next enqueue opens a connection to the database that they name."""
        self.__dict__.pop("direct", None)

    async def close(self) -> None:
        """Closes the session of the running event loop."""
        session = self.sessions.get(asyncio.get_running_loop())
        if session is not None:
            await session.close()

    def close_sync(self) -> None:
        """Closes what code without an event loop holds open in this process."""
        self.portal.close()
        if "direct" in self.__dict__:
            self.direct.close()
