"""Kinds that fail, give up, or come to an end other than a result."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, cast

from tenure import Cancel, Context, Fail, Retry, Snooze
from tenure.simulate.app import app
from tenure.simulate.draws import noise

MOST_ATTEMPTS = 4
TOO_MANY_KIB = 2048

_SOON = Retry(max_attempts=3, initial="100ms", jitter=False)


class Unprintable(Exception):  # noqa: N818 - reads as the fact it states
    def __str__(self) -> str:
        raise RuntimeError("not even this can be told")


class Unpicklable(Exception):  # noqa: N818
    def __init__(self, seed: int) -> None:
        super().__init__(f"cannot leave its process, seed {seed}")
        self.held = lambda: seed


@app.job(retry=Retry(max_attempts=MOST_ATTEMPTS, initial="100ms", jitter=False))
async def flaky_until(ctx: Context, seed: int, succeeds_at: int = 2) -> int:
    """Fails until the given attempt. Ends: completed there, or as a dead letter after four."""
    if ctx.attempt < succeeds_at:
        raise ConnectionError(f"seed {seed}: not before attempt {succeeds_at}")
    return seed


@app.job(retry=_SOON)
async def always_failing(seed: int) -> None:
    """Fails whenever it is tried. Ends: dead letter after three attempts."""
    raise RuntimeError(f"seed {seed} never works")


@app.job(retry=Retry(give_up_on=ValueError))
async def not_retryable(seed: int) -> None:
    """Raises what its policy gives up on. Ends: dead letter at the first attempt."""
    raise ValueError(f"seed {seed} will never be right")


@app.job(retry=Retry(max_attempts=5, initial="100ms", jitter=False, on=ConnectionError))
async def picky_retry(ctx: Context, seed: int) -> None:
    """First an error that is tried again, then one that is not. Ends: dead letter at the second attempt."""
    if ctx.attempt == 1:
        raise ConnectionError(f"seed {seed}: try again")
    raise KeyError(f"seed {seed}: do not")


@app.job(retry=_SOON)
async def last_chance(ctx: Context, seed: int) -> str:
    """Fails, but makes do with less when no attempt is left. Ends: completed at the third."""
    if not ctx.is_last_attempt:
        raise TimeoutError(f"seed {seed}: the good way is closed")
    return f"seed {seed} the other way"


@app.job
async def fails_for_good(seed: int) -> Fail:
    """Knows that retrying is no use, and returns Fail. Ends: failed."""
    return Fail(f"seed {seed} is beyond repair")


@app.job
def cancels_itself(seed: int) -> None:
    """Finds that it is not needed, and raises Cancel from a thread. Ends: canceled."""
    raise Cancel(f"seed {seed} is not needed any more")


@app.job
async def snoozes(ctx: Context, seed: int, times: int = 1) -> int | Snooze:
    """Asks for a later run; a snooze spends no attempt, so the fence counts them. Ends: completed at attempt 1."""
    return Snooze("200ms") if ctx.fence <= times else seed


@app.job(timeout="1s", max_attempts=1)
async def over_timeout(seed: int) -> int:
    """Sleeps on when its second is over. Ends: dead letter."""
    await asyncio.sleep(10)
    return seed


@app.job(timeout="1s", max_attempts=1)
def over_timeout_in_thread(ctx: Context, seed: int) -> int:
    """A thread that runs over its second, but listens. Ends: dead letter, its slot free at once."""
    ctx.signal.wait_sync(10)
    ctx.signal.check()
    return seed


@app.job(max_attempts=1)
async def raises_unprintable(seed: int) -> None:
    """Its exception cannot be printed. Ends: dead letter, and the error says so."""
    raise Unprintable(seed)


@app.job(run_in="process", max_attempts=1)
def raises_unpicklable(seed: int) -> None:
    """Its exception cannot leave its process. Ends: dead letter, and the error still tells."""
    raise Unpicklable(seed)


@app.job
async def exits(seed: int) -> None:
    """Calls sys.exit, which must end the job and not the worker. Ends: dead letter."""
    sys.exit(f"seed {seed} has had enough")


@app.job(max_attempts=1)
async def returns_unserialisable(seed: int) -> Any:
    """Its result cannot be written down. Ends: dead letter with an error that says why."""
    return {"seed": seed, "result": object()}


@app.job(max_attempts=1)
async def returns_wrong_type(seed: int) -> int:
    """Returns other than its annotation says. Ends: dead letter with an error that says why."""
    return cast("int", f"seed {seed} as text")


@app.job(max_attempts=1)
async def returns_too_much(seed: int) -> str:
    """Its result is larger than a job may keep. Ends: dead letter with an error that says why."""
    return noise(seed, TOO_MANY_KIB)
