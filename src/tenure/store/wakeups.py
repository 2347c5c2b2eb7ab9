"""LISTEN and NOTIFY of a process: one of each, shared by its users, on connections that also run other statements."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from tenure.store.link import Link
from tenure.store.listener import Listener
from tenure.store.notifier import Notifier
from tenure.store.target import DatabaseTarget

DUE = "due"
"""The word that a job was scheduled: the stager looks when the next one is due."""

FREE = "free"
"""The notification that a duty was released: candidates need not wait for its lease to run out."""


def jobs_in(queue: str) -> str:
    """The word that a queue has new work."""
    return f"jobs {queue}"


GONE = "gone"
"""The word that runs may have lost their jobs: with an id, the run of that job; alone, any."""

MOST_GONE = 20
"""Jobs that are named one by one. When there are more, every run is asked."""


def gone(job_ids: Sequence[str]) -> list[str]:
    """The words by which runs learn that they have lost these jobs."""
    return [f"{GONE} {job_id}" for job_id in job_ids] if len(job_ids) <= MOST_GONE else [GONE]


class Wakeups:
    """Subscribers are called with each word, and with "" when words may have been missed.

    Several users in one event loop may share it, a worker and a client: it starts with the first and stops with the last of them.
    """

    def __init__(
        self,
        database: DatabaseTarget,
        heard: Callable[[str], None] | None = None,
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
        self._subscribers: list[Callable[[str], None]] = [] if heard is None else [heard]
        self._notifier = Notifier(self.link)
        self._listener = Listener(self._listening_link, self._hear, self._notifier.say, alone=self._listening_link is self.link)
        self._ended = ended
        self._users: set[object] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def deaf(self) -> bool:
        return self._listener.deaf

    def tell(self, word: str) -> None:
        """Sends the word soon, together with others."""
        self._notifier.tell(word)

    def subscribe(self, heard: Callable[[str], None]) -> Callable[[], None]:
        """Returns a function that ends the subscription."""
        self._subscribers.append(heard)

        def end() -> None:
            with suppress(ValueError):
                self._subscribers.remove(heard)

        return end

    def start(self, user: object = None, *, listening: bool = True) -> None:
        self._users.add(user)
        if "notifier" not in self._tasks:
            self._tasks["notifier"] = asyncio.create_task(self._notifier.beat.run())
        if listening:
            self.listen()

    def listen(self) -> None:
        """Starts listening, for users that began without."""
        if "listener" not in self._tasks:
            self._listener.start()
            self._tasks["listener"] = asyncio.create_task(self._listener.beat.run())

    async def stop(self, user: object = None) -> None:
        """Ends all of it when the last user stops."""
        self._users.discard(user)
        if self._users:
            return
        self._ended()
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listener.stop()
        await self._notifier.flush()
        await self._listening_link.close()
        await self.link.close()

    def _hear(self, word: str) -> None:
        for heard in list(self._subscribers):
            heard(word)
