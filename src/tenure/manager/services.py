"""What processes need of their supervisor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from tenure.manager.event_relay import Telling
from tenure.manager.process import ChildProcess
from tenure.manager.spec import Hello
from tenure.store.link import Link


class SupervisorServices(Protocol):
    id: str
    children: set[ChildProcess]
    """All that are started and not yet buried."""
    events: Telling
    stopping: asyncio.Event

    @property
    def link(self) -> Link:
        """There once a first child has said where PostgreSQL is."""

    async def open(self, hello: Hello) -> None:
        """Opens what all children share, if that is not done."""

    async def declare(self, hello: Hello) -> None:
        """Tells the fleet what the code says, if that is not known."""

    async def insist(self, work: Callable[[], Awaitable[object]]) -> None:
        """Repeats until PostgreSQL answers, or it is time to go (then the lease does it)."""

    def tell(self, word: str) -> None:
        """Wakes other processes, after a commit."""

    def renew_soon(self) -> None: ...

    def fail(self, code: int, why: str) -> None:
        """The end of it all."""
