"""Keeps LISTEN connected, and tests whether it delivers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from uuid import uuid4

from tenure.model.wakeup import Topic, Wakeup
from tenure.periodic import PeriodicTask
from tenure.store import queues
from tenure.store.link import Link, Receiver

log = logging.getLogger("tenure")

SILENCE = 60.0
"""Seconds without an answer of the server after which it is asked. TCP keepalives usually find a dead connection sooner."""

ANSWER = 5.0
ECHO = 2.0
"""Seconds that the self-test waits for its own notification."""

TEST_AGAIN = 1.0
FAILED_TESTS = 2
"""Failed tests in a row after which LISTEN is reported as not delivering."""


class Listener:
    """Calls `on_wakeup(wakeup)` for each notification that it knows, and with `Wakeup.missed()` when one may have been missed.

    A transaction pooler accepts LISTEN and delivers nothing. So after each connect we send a notification to ourselves. A test
    has failed only if the notification was sent and had not arrived when the listening connection answered a later statement. A
    server that is away or slow does not fail it.
    """

    def __init__(
        self, link: Link, on_wakeup: Callable[[Wakeup], None], send: Callable[[Wakeup], Awaitable[bool]], *, alone: bool
    ) -> None:
        """`send(wakeup)` returns whether it was sent. `alone`: it uses the same link."""
        self._link = link
        self._on_wakeup = on_wakeup
        self._send = send
        self._alone = alone
        self._test_wakeup = Wakeup.listener_test(uuid4())
        self._arrived = asyncio.Event()
        self._tested = 0
        """The number of the connection that passed the test."""
        self._failed = 0
        self.not_delivering = False
        self.task = PeriodicTask("listener", self._turn)

    def start(self) -> None:
        self._link.listen(Receiver(self._link.database.channel, self._take, self._on_missed, self.task.wake))

    def stop(self) -> None:
        self._link.unlisten()

    def _take(self, payload: str) -> None:
        wakeup = Wakeup.parse(payload)
        if wakeup == self._test_wakeup:
            self._arrived.set()
        elif wakeup is not None and wakeup.topic is not Topic.TEST:
            self._on_wakeup(wakeup)

    def _on_missed(self) -> None:
        self._on_wakeup(Wakeup.missed())

    async def _turn(self) -> float:
        session = await self._link.open()
        if session != self._tested:
            return await self._test(session)
        if time.monotonic() - self._link.last_answer > SILENCE:
            await self._link.ping(ANSWER)
        return SILENCE

    async def _test(self, session: int) -> float:
        self._arrived.clear()
        if not await self._send_test():
            return TEST_AGAIN
        with suppress(TimeoutError):
            async with asyncio.timeout(ECHO):
                await self._arrived.wait()
        if not self._arrived.is_set():
            await self._link.ping(ANSWER)  # the server delivers nothing to a connection that is busy
        if self._arrived.is_set():
            self._tested, self._failed, self.not_delivering = session, 0, False
            log.debug("listener: the test notification has arrived")
        elif session == self._link.sessions:
            self._failed += 1
        if self._failed >= FAILED_TESTS and not self.not_delivering:
            self.not_delivering = True
            log.warning(
                "LISTEN delivers nothing (a transaction pooler such as PgBouncer?): polling instead, which is slower; "
                "give a direct connection in `listen_dsn` to be woken at once"
            )
        return SILENCE if self.not_delivering or not self._failed else TEST_AGAIN

    async def _send_test(self) -> bool:
        if not self._alone or self._link.is_direct:
            return await self._send(self._test_wakeup)
        # Behind a pooler a connection may receive its own notifications and no others.
        async with Link(self._link.database, "notify") as other:
            await other.fetch(queues.notify(self._link.database.channel, [self._test_wakeup]), within=ANSWER)
        return True
