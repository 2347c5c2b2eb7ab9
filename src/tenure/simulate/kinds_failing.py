"""Kinds that fail, or end in another way than with a result."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, cast

from tenure import Cancel, Context, Fail, Retry, Snooze
from tenure.simulate.app import app
from tenure.simulate.draws import noise

MAX_ATTEMPTS = 4
TOO_MANY_KIB = 2048

_SOON = Retry(max_attempts=3, initial="100ms", jitter=False)


class Unprintable(Exception):  # noqa: N818 - reads as the fact it states
    def __str__(self) -> str:
        raise RuntimeError("this exception cannot be printed")


class Unpicklable(Exception):  # noqa: N818
    def __init__(self, seed: int) -> None:
        super().__init__(f"cannot leave its process, seed {seed}")
        self.held = lambda: seed


@app.job(retry=Retry(max_attempts=MAX_ATTEMPTS, initial="100ms", jitter=False))
async def flaky_until(ctx: Context, seed: int, succeeds_at: int = 2) -> int:
    """Fails until the given attempt. Ends: completed on that attempt, or dead letter after four."""
    if ctx.attempt < succeeds_at:
        raise ConnectionError(f"seed {seed}: not before attempt {succeeds_at}")
    return seed


@app.job(retry=_SOON)
async def always_failing(seed: int) -> None:
    """Fails on every attempt. Ends: dead letter after three attempts."""
    raise RuntimeError(f"seed {seed} never works")


@app.job(retry=Retry(give_up_on=ValueError))
async def not_retryable(seed: int) -> None:
    """Raises an error that its retry policy does not retry. Ends: dead letter on the first attempt."""
    raise ValueError(f"seed {seed} will never be right")


@app.job(retry=Retry(max_attempts=5, initial="100ms", jitter=False, on=ConnectionError))
async def picky_retry(ctx: Context, seed: int) -> None:
    """Raises an error that is retried, then one that is not. Ends: dead letter on the second attempt."""
    if ctx.attempt == 1:
        raise ConnectionError(f"seed {seed}: try again")
    raise KeyError(f"seed {seed}: do not")


@app.job(retry=_SOON)
async def last_chance(ctx: Context, seed: int) -> str:
    """Fails, but uses a fallback on its last attempt. Ends: completed on the third attempt."""
    if not ctx.is_last_attempt:
        raise TimeoutError(f"seed {seed}: the good way is closed")
    return f"seed {seed} the other way"


@app.job
async def fails_for_good(seed: int) -> Fail:
    """Returns Fail, so it is not retried. Ends: failed."""
    return Fail(f"seed {seed} is beyond repair")


@app.job
def cancels_itself(seed: int) -> None:
    """Raises Cancel from a thread. Ends: canceled."""
    raise Cancel(f"seed {seed} is not needed any more")


@app.job
async def snoozes(ctx: Context, seed: int, times: int = 1) -> int | Snooze:
    """Returns Snooze, which uses no attempt, so it counts runs by the fence. Ends: completed on attempt 1."""
    return Snooze("200ms") if ctx.fence <= times else seed


@app.job(timeout="1s", max_attempts=1)
async def over_timeout(seed: int) -> int:
    """Sleeps beyond its timeout of one second. Ends: dead letter."""
    await asyncio.sleep(10)
    return seed


@app.job(timeout="1s", max_attempts=1)
def over_timeout_in_thread(ctx: Context, seed: int) -> int:
    """A thread that exceeds its timeout but checks for the abort signal. Ends: dead letter, and its slot is free at once."""
    ctx.signal.wait_sync(10)
    ctx.signal.check()
    return seed


@app.job(max_attempts=1)
async def raises_unprintable(seed: int) -> None:
    """Raises an exception that cannot be printed. Ends: dead letter, with the type of the exception as its error."""
    raise Unprintable(seed)


@app.job(run_in="process", max_attempts=1)
def raises_unpicklable(seed: int) -> None:
    """Raises an exception that cannot be pickled. Ends: dead letter, with the message of the exception in its error."""
    raise Unpicklable(seed)


@app.job
async def exits(seed: int) -> None:
    """Calls sys.exit, which ends the job but not the worker. Ends: dead letter."""
    sys.exit(f"seed {seed} has had enough")


@app.job(max_attempts=1)
async def returns_unserialisable(seed: int) -> Any:
    """Returns a value that cannot be encoded as JSON. Ends: dead letter, with an error that explains it."""
    return {"seed": seed, "result": object()}


@app.job(max_attempts=1)
async def returns_wrong_type(seed: int) -> int:
    """Returns a value that does not match its annotation. Ends: dead letter, with an error that explains it."""
    return cast("int", f"seed {seed} as text")


@app.job(max_attempts=1)
async def returns_too_much(seed: int) -> str:
    """Returns more than the largest allowed result. Ends: dead letter, with an error that explains it."""
    return noise(seed, TOO_MANY_KIB)
