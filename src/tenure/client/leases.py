"""`app.lease("nightly-import")`: a lock for your own code that one process holds at a time.

A row in `tenure.leases`, like those of the leader's duties, under a name that no duty has. It is renewed in the background on a
separate connection. A holder that could not renew it in time treats it as lost before another process can acquire it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from tenure.client.runtime import ClientRuntime
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError, LeaseNotHeld, LeaseTaken, StoreUnavailable, TenureError
from tenure.model.wakeup import Wakeup
from tenure.periodic import backoff, boottime
from tenure.store import leases
from tenure.store.leases import LEASE, LeaseHeartbeat, Term

# The driver is slow to import: what needs it is imported when it is first used.
if TYPE_CHECKING:
    from tenure.store.link import Link

log = logging.getLogger("tenure")

LONGEST_NAME = 200
SHORTEST = 3.0
MARGIN = 1.0
"""A holder that could not renew its lease treats it as lost this many seconds before it expires."""
LONGEST_LOOK = 5.0
"""Seconds between two tries of a waiter that receives no notification."""


class Lease:
    """Held inside `async with`, or between `acquire()` and `release()`."""

    def __init__(
        self, name: str, runtime: ClientRuntime, *, wait: bool = True, timeout: Duration | None = None, duration: Duration = "15s"
    ) -> None:
        if not isinstance(name, str) or not name or not name.isprintable() or len(name.encode()) > LONGEST_NAME:
            raise ConfigError(f"a lease needs a printable name of at most {LONGEST_NAME} bytes, not {name!r}")
        if not wait and timeout is not None:
            raise ConfigError(f"lease {name!r}: give either wait=False or timeout=, not both")
        self.name = name
        self.lost = asyncio.Event()
        """Set when the lease was lost without being released."""
        self._runtime = runtime
        self._patience = 0.0 if not wait else None if timeout is None else to_seconds(timeout, what="timeout")
        self._duration = to_seconds(duration, what="duration")
        if self._duration < SHORTEST:
            raise ConfigError(f"lease {name!r}: duration is {self._duration:g} s, but must be at least {SHORTEST:g} s")
        self._holder = str(uuid4())
        self._held: Term | None = None
        self._until = 0.0
        self._in_doubt = False
        """A try that got no answer may have acquired it."""
        self._keepers: list[asyncio.Task[None]] = []
        self._link: Link | None = None
        self._told_lost: Callable[[], None] = lambda: None

    @property
    def term(self) -> int:
        """Grows with every holder: a fencing token for your own stores. Raises `LeaseNotHeld` before it is acquired."""
        if self._held is None:
            raise LeaseNotHeld(self.name, None)
        return self._held.term

    @property
    def seconds_left(self) -> float:
        """Seconds for which it is still held if it is not renewed again."""
        return max(0.0, self._until - boottime()) if self._held is not None and not self.lost.is_set() else 0.0

    def check(self) -> None:
        """Raises `LeaseNotHeld` unless the lease is still held. Call it before each step that must not be done twice."""
        if not self.seconds_left:
            raise LeaseNotHeld(self.name, None if self._held is None else self._held.term)

    async def acquire(self) -> bool:
        """Whether it was acquired, at once or within `timeout`. Without a timeout, waits until it is free."""
        if self._held is not None:
            raise ConfigError(f"lease {self.name!r} is already held by this object: release it first, or create another one")
        from tenure.store.link import Link  # noqa: PLC0415

        self.lost.clear()
        self._link = Link(self._runtime.database(), "named lease", hot=True)
        try:
            self._held = await self._taken(self._link)
        finally:
            if self._held is None:
                await self._link.close()
        if self._held is not None:
            self._keepers = [asyncio.create_task(self._keep(self._link, self._held)), asyncio.create_task(self._expire())]
        return self._held is not None

    async def release(self) -> None:
        """Another process can acquire it at once. May be called twice, and after it was lost."""
        held, self._held = self._held, None
        if held is None or self._link is None:
            return
        for task in self._keepers:
            task.cancel()
        await asyncio.wait(self._keepers)
        try:
            with suppress(StoreUnavailable):  # then it expires
                if await self._link.fetch(leases.release(self._holder, [held])):
                    self._runtime.session().notify(Wakeup.lease_released(self.name))
        finally:
            await self._link.close()

    async def __aenter__(self) -> Self:
        if not await self.acquire():
            raise LeaseTaken(self.name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Raises `LeaseNotHeld` if the lease was lost and the block did not notice: another process may have run it as well."""
        held, lost = self._held, not self.seconds_left
        await self.release()
        if lost and held is not None and kind is None:
            raise LeaseNotHeld(self.name, held.term)

    async def _taken(self, link: Link) -> Term | None:
        if self._patience == 0.0:
            return (await self._ask(link))[0]
        deadline = None if self._patience is None else boottime() + self._patience
        try:
            first, _ = await self._ask(link)
        except StoreUnavailable:
            first = None
        return first or await self._awaited(link, deadline)

    async def _awaited(self, link: Link, deadline: float | None) -> Term | None:
        failures = 0
        async with self._runtime.session().waiting.on(Wakeup.lease_released(self.name)) as news:
            while True:
                try:
                    term, free_in = await self._ask(link)
                    failures = 0
                except StoreUnavailable:
                    failures += 1
                    term, free_in = None, backoff(failures)
                    if deadline is not None and boottime() + free_in >= deadline:
                        raise
                left = LONGEST_LOOK if deadline is None else deadline - boottime()
                if term is not None or left <= 0:
                    return term
                await news.wait(min(left, LONGEST_LOOK, max(0.05, free_in)))

    async def _ask(self, link: Link) -> tuple[Term | None, float]:
        row, asked_at = LEASE + self.name, boottime()
        about = {"host": socket.gethostname(), "pid": os.getpid()}
        try:
            [found] = await link.fetch(leases.acquire(self._holder, [(row, self._duration)], about))
        except StoreUnavailable:
            self._in_doubt = True
            raise
        number = found.won.get(row)
        if number is None:
            return None, LONGEST_LOOK if found.free_in is None else found.free_in
        term = Term(row, self._holder, number, self._duration)
        if self._in_doubt:  # acquired by a try that got no answer: half of it may be over
            asked_at, self._in_doubt = boottime(), False
            if not await link.fetch(leases.beat(self._holder, [_heartbeat(term)])):
                return None, 0.0
        self._until = asked_at + self._duration - MARGIN
        return term, 0.0

    async def _keep(self, link: Link, term: Term) -> None:
        """Renews it three times in its duration. Ends when another process has it."""
        failures = 0
        while True:
            await asyncio.sleep(backoff(failures) if failures else self._duration / 3)
            asked_at = boottime()
            try:
                renewed = await link.fetch(leases.beat(self._holder, [_heartbeat(term)]))
            except TenureError as error:  # unavailable, or refused because of a trigger or a missing privilege
                failures += 1
                log.debug("lease not renewed", extra={"lease": self.name, "term": term.term, "error": str(error)})
                continue
            if not renewed or self.lost.is_set():
                self._lose("another process may hold it")
                return
            failures = 0
            self._until = asked_at + self._duration - MARGIN

    async def _expire(self) -> None:
        """Marks the lease as lost when it was not renewed in time, even while a renewal hangs."""
        while (left := self._until - boottime()) > 0:  # noqa: ASYNC110 - renewals move the end
            await asyncio.sleep(left)
        self._lose("it could not be renewed in time")

    def _lose(self, why: str) -> None:
        if self.lost.is_set() or self._held is None:
            return
        log.warning("lease lost", extra={"lease": self.name, "term": self._held.term, "reason": why})
        self.lost.set()
        self._told_lost()


def _heartbeat(term: Term) -> LeaseHeartbeat:
    return LeaseHeartbeat(name=term.duty, term=term.term, ttl=term.ttl)


class SyncLease:
    """The same for code without an event loop: `with app.lease_sync(...)`. A thread of the client renews it."""

    def __init__(self, lease: Lease, runtime: ClientRuntime) -> None:
        self._lease = lease
        self._portal = runtime.portal
        self.name = lease.name
        self.lost = threading.Event()
        """Set when the lease was lost without being released."""
        lease._told_lost = self.lost.set  # noqa: SLF001 - the other half of it

    @property
    def term(self) -> int:
        return self._lease.term

    @property
    def seconds_left(self) -> float:
        return self._lease.seconds_left

    def check(self) -> None:
        self._lease.check()

    def acquire(self) -> bool:
        self.lost.clear()
        return self._portal.run(self._lease.acquire())

    def release(self) -> None:
        self._portal.run(self._lease.release())

    def __enter__(self) -> Self:
        self.lost.clear()
        self._portal.run(self._lease.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._portal.run(self._lease.__aexit__(kind, error, traceback))
