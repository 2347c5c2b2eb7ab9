"""The connections that an app's client holds open, each made at first use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
    """A session for each event loop, and one connection for code without an event loop.

    They follow the settings: after a change of the database, the next call connects to the new one.
    """

    def __init__(self, database: Callable[[], DatabaseTarget], notify_within: Callable[[], float]) -> None:
        self._database = database
        self._notify_within = notify_within
        self.portal = Portal()
        self._direct: DirectEnqueuer | None = None
        self.sessions: dict[asyncio.AbstractEventLoop, Session] = {}
        self._wakeups: dict[tuple[asyncio.AbstractEventLoop, DatabaseTarget], Wakeups] = {}

    def session(self) -> Session:
        """The session of the running event loop."""
        refuse_in_rerun()
        loop, database = asyncio.get_running_loop(), self._database()
        session = self.sessions.get(loop)
        if session is None or session.database != database:
            session = self._new_session(loop, session)
        return session

    def _new_session(self, loop: asyncio.AbstractEventLoop, former: Session | None) -> Session:
        """`former` is connected to the database that the settings named before."""
        from tenure.client.session import Session  # noqa: PLC0415

        def ended() -> None:
            if self.sessions.get(loop) is session:
                del self.sessions[loop]

        session = self.sessions[loop] = Session(self._database(), self.wakeups(), ended=ended)
        if former is not None:
            session.closing(former)
        return session

    @property
    def direct(self) -> DirectEnqueuer:
        """Enqueues without an event loop."""
        refuse_in_rerun()
        database, direct = self._database(), self._direct
        if direct is None or direct.database != database:
            from tenure.client.direct import DirectEnqueuer  # noqa: PLC0415

            direct = self._direct = DirectEnqueuer(database)  # the former one closes itself when its last caller is done
        return direct

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

    async def close(self) -> None:
        """Closes the session of the running event loop."""
        session = self.sessions.get(asyncio.get_running_loop())
        if session is not None:
            await session.close()

    def close_sync(self) -> None:
        """Closes what code without an event loop holds open in this process."""
        self.portal.close()
        if self._direct is not None:
            self._direct.close()
