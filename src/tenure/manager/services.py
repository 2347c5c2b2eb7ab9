"""What the lifecycle of a child needs from its supervisor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from tenure.manager.event_relay import EventRelay
from tenure.manager.process import ChildProcess
from tenure.manager.spec import ChildHello
from tenure.model.run_counts import RunTotals
from tenure.model.wakeup import Wakeup
from tenure.store.link import Link


class SupervisorServices(Protocol):
    id: str
    children: set[ChildProcess]
    """All that are started and not yet reaped."""
    events: EventRelay
    stopping: asyncio.Event
    runs: RunTotals
    """Of all children, also of those that have ended."""
    deaths: int
    """Processes that have ended without having been asked to."""

    @property
    def link(self) -> Link:
        """Exists once a first child has sent the DSN."""

    async def open(self, hello: ChildHello) -> None:
        """Opens what all children share, unless that is done."""

    async def declare(self, hello: ChildHello) -> None:
        """Stores what the code declares, unless it is stored already."""

    async def retry_while_unavailable(self, work: Callable[[], Awaitable[object]]) -> None:
        """Repeats `work` until PostgreSQL answers or the shutdown has to end; then the expired lease has the same effect."""

    def notify(self, wakeup: Wakeup) -> None:
        """Wakes other processes, after a commit."""

    def renew_soon(self) -> None: ...

    def fail(self, code: int, why: str) -> None:
        """Shuts down the supervisor with this exit code."""
