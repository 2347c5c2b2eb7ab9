"""LISTEN and NOTIFY of a process: one of each, shared by its users, on connections that also run other statements."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from tenure.model.wakeup import Wakeup
from tenure.store.link import Link
from tenure.store.listener import Listener
from tenure.store.notifier import Notifier
from tenure.store.target import DatabaseTarget

LOOK_AGAIN = 0.1  # seconds


class Wakeups:
    """Subscribers are called with each wake-up, and with `Wakeup.missed()` when some may have been missed.

    Several users in one event loop may share it, a worker and a client: it starts with the first and stops with the last of them.
    """

    def __init__(
        self,
        database: DatabaseTarget,
        on_wakeup: Callable[[Wakeup], None] | None = None,
        *,
        role: str = "wakeups",
        listen_on: Link | None = None,
        notify_on: Link | None = None,
        within: float | None = None,
        ended: Callable[[], object] = lambda: None,
    ) -> None:
        """Has one link of its own unless links are given. Behind a pooler, or with `listen_dsn`, LISTEN has a separate one.
        `ended()` is called when the last user stops, before anything is closed."""
        self.link = notify_on or listen_on or Link(database, role, hot=True, within=within)
        """Sends notifications, and may run other short statements: each is canceled after `within` seconds."""
        direct = not database.pooled and database.listen_dsn is None
        self._listening_link = (listen_on or self.link) if direct else Link(database.for_listening, "listen")
        self._subscribers: list[Callable[[Wakeup], None]] = [] if on_wakeup is None else [on_wakeup]
        self._notifier = Notifier(self.link)
        self._listener = Listener(
            self._listening_link, self._on_wakeup, self._notifier.send, alone=self._listening_link is self.link
        )
        self._ended = ended
        self._users: set[object] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def not_delivering(self) -> bool:
        """Notifications do not arrive, although they are sent."""
        return self._listener.not_delivering

    def notify(self, wakeup: Wakeup) -> None:
        """Sends it soon, together with others."""
        self._notifier.notify(wakeup)

    def subscribe(self, on_wakeup: Callable[[Wakeup], None]) -> Callable[[], None]:
        """Returns a function that ends the subscription."""
        self._subscribers.append(on_wakeup)

        def end() -> None:
            with suppress(ValueError):
                self._subscribers.remove(on_wakeup)

        return end

    def start(self, user: object = None, *, listening: bool = True) -> None:
        self._users.add(user)
        if "notifier" not in self._tasks:
            self._tasks["notifier"] = asyncio.create_task(self._notifier.task.run())
        if listening:
            self.listen()

    def listen(self) -> None:
        """Starts listening, for users that began without."""
        if "listener" not in self._tasks:
            self._listener.start()
            self._tasks["listener"] = asyncio.create_task(self._listener.task.run())

    async def stop(self, user: object = None) -> None:
        """Ends all of it when the last user stops."""
        self._users.discard(user)
        if self._users:
            return
        self._ended()
        tasks, self._tasks = list(self._tasks.values()), {}
        await _canceled(tasks)
        self._listener.stop()
        await self._notifier.flush()
        await self._listening_link.close()
        await self.link.close()

    def _on_wakeup(self, wakeup: Wakeup) -> None:
        for on_wakeup in list(self._subscribers):
            on_wakeup(wakeup)


async def _canceled(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Returns when they have ended.

    A task that is being canceled is not canceled again: psycopg logs a second cancellation while it handles the first. But the
    first may be that of a time limit, after which the task continues. So it is looked at again.
    """
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            if not task.cancelling():
                task.cancel()
        await asyncio.wait(running, timeout=LOOK_AGAIN)
