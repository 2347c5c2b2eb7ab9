"""The loop of all periodic tasks: it sleeps with jitter, backs off after failures and can be woken."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tenure.outages import failures

FIRST_BACKOFF = 0.05
FOREVER = 3600.0  # for a turn that waits to be woken
LONGEST_BACKOFF = 2.0  # all workers reconnect within seconds of a restart, but not at the same time


def boottime() -> float:
    """A monotonic clock that continues while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def backoff(failures: int) -> float:
    """Full jitter, doubling from 50 ms to 2 s."""
    return random.uniform(0.2, 1.0) * min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(failures, 10))  # noqa: S311


def jittered(seconds: float) -> float:
    """Up to a tenth less: never later than given, and not in step with other processes."""
    return seconds * random.uniform(0.9, 1.0)  # noqa: S311


def cancellations() -> int:
    """How often the running task was cancelled. If a driver is cancelled while its connection breaks, it may raise only the
    connection error; a loop that continues after outages would then never end. Such loops check whether this number has grown."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0


class PeriodicTask:
    """Calls `turn` repeatedly. A turn returns the seconds until the next one; `wake()` starts it sooner.

    A turn that fails is retried, and logged by `failures`. Cancellation ends the task at once, `end()` after the current turn.
    """

    def __init__(self, name: str, turn: Callable[[], Awaitable[float]], *, at_once: bool = False) -> None:
        """`at_once`: after a turn that returns 0, the next one begins before any other task runs. Only for turns that always
        wait for an answer of PostgreSQL."""
        self.name = name
        self._turn = turn
        self._at_once = at_once
        self._woken = asyncio.Event()
        self._ending = asyncio.Event()
        self._failures = 0

    def wake(self) -> None:
        self._woken.set()

    def end(self) -> None:
        """The current turn is the last one. It is not interrupted, so no statement is left without its answer."""
        self._ending.set()
        self.wake()

    async def run(self) -> None:
        while not self._ending.is_set():
            self._woken.clear()
            rest = await self._once()
            if rest > 0:
                await self._sleep(rest)
            elif not self._at_once:
                await asyncio.sleep(0)

    async def _once(self) -> float:
        cancelled_before = cancellations()
        try:
            rest = await self._turn()
        except Exception as error:  # noqa: BLE001 - the next turn may succeed after any error
            failures.failed(self.name, error)
        else:
            if self._failures:
                failures.recovered(self.name)
            self._failures = 0
            return rest
        if cancellations() > cancelled_before:
            raise asyncio.CancelledError
        self._failures += 1
        return backoff(self._failures)

    async def _sleep(self, seconds: float) -> None:
        # While turns fail, a wake-up must not turn the backoff into a busy loop.
        sooner = self._ending if self._failures else self._woken
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await sooner.wait()
