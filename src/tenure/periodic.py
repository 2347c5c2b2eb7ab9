"""The loop that sleeps, jitters, backs off and wakes. It exists once; everything periodic is a turn of it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tenure.outages import failures

FIRST_BACKOFF = 0.05
FOREVER = 3600.0  # a turn that waits to be woken
LONGEST_BACKOFF = 2.0  # all workers are back within seconds of the server, spread enough not to trample it


def boottime() -> float:
    """Goes on while the machine is suspended, where the monotonic clock stops."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def backoff(failures: int) -> float:
    """Full jitter, doubling from 50 ms to 2 s."""
    return random.uniform(0.2, 1.0) * min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(failures, 10))  # noqa: S311


def jittered(seconds: float) -> float:
    """A tenth less or the same: never later than said, and never in step with the neighbours."""
    return seconds * random.uniform(0.9, 1.0)  # noqa: S311


def cancellations() -> int:
    """How often the running task was asked to end. A driver that is asked while its connection breaks may tell only of the
    latter, and then whoever goes on after an outage would never end: such loops look whether this has grown."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0


class PeriodicTask:
    """Calls `turn` for ever. A turn answers after how many seconds it wants the next one; `wake()` makes it sooner.

    A turn that fails is repeated, and logged by `failures`. Cancellation ends a beat at once, `end()` after the turn
    that is under way.
    """

    def __init__(self, name: str, turn: Callable[[], Awaitable[float]]) -> None:
        self.name = name
        self._turn = turn
        self._woken = asyncio.Event()
        self._ending = asyncio.Event()
        self._failures = 0

    def wake(self) -> None:
        self._woken.set()

    def end(self) -> None:
        """The turn under way is the last one. Nothing is interrupted, so no statement is left without its answer."""
        self._ending.set()
        self.wake()

    async def run(self) -> None:
        while not self._ending.is_set():
            self._woken.clear()
            rest = await self._once()
            if rest > 0:
                await self._sleep(rest)
            else:
                await asyncio.sleep(0)

    async def _once(self) -> float:
        asked_to_end = cancellations()
        try:
            rest = await self._turn()
        except Exception as error:  # noqa: BLE001 - any error may be gone at the next turn
            failures.failed(self.name, error)
        else:
            if self._failures:
                failures.recovered(self.name)
            self._failures = 0
            return rest
        if cancellations() > asked_to_end:
            raise asyncio.CancelledError
        self._failures += 1
        return backoff(self._failures)

    async def _sleep(self, seconds: float) -> None:
        # While failing, a wake-up must not turn the back-off into a hot loop.
        sooner = self._ending if self._failures else self._woken
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await sooner.wait()
