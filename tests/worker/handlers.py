"""One handler in four executors: as a coroutine and as a plain function, each also in a process of its own.

The input selects the behaviour, so that all of them are called the same way. Imported by the test and by the
processes: what a handler saw goes into a file, or into its output.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tenure import Cancel, Context, Fail, Job, Retry, Snooze, Tenure
from tests.worker import hostile

app = Tenure()  # TENURE_DSN says where

EXECUTORS = ("loop", "thread", "process", "process_async")
PROCESSES = ("process", "process_async")
LONG = 60.0
LATER = datetime(2101, 2, 3, 4, 5, 6, 789, tzinfo=timezone(timedelta(hours=-3)))


class Order(BaseModel):
    act: str
    text: str = ""
    number: int = 0
    folder: str = ""
    """Where to leave notes."""


class Receipt(BaseModel):
    number: int
    order: Order


class Final(Exception):
    """Not worth another attempt."""


class Awkward(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def note(order: Order, **seen: Any) -> None:
    """A line for the test to read, from any process."""
    file = os.open(Path(order.folder) / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, json.dumps({"pid": os.getpid(), **seen}).encode() + b"\n")
    os.close(file)


def notes(folder: Path) -> list[dict[str, Any]]:
    path = folder / "notes"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# Acts without waiting: the same code in all executors


def give(ctx: Context, order: Order) -> Any:
    return Receipt(number=order.number + 1, order=order)


def decide(ctx: Context, order: Order) -> Any:
    how, outcome = order.text.split()
    values = {
        "Snooze": lambda: Snooze("1h"),
        "Snooze_until": lambda: Snooze(until=LATER),
        "Fail": lambda: Fail("not today"),
        "Cancel": lambda: Cancel("no need"),
    }
    value = values[outcome]()
    if how == "raises":
        raise value
    return value


def fail(ctx: Context, order: Order) -> Any:
    raise ValueError(f"boom in attempt {ctx.attempt}")


def give_up(ctx: Context, order: Order) -> Any:
    raise Final("for good")


def raise_named(ctx: Context, order: Order) -> Any:
    known = (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, StopIteration, Awkward)
    raise {error.__name__: error for error in known}[order.text]("by the handler")


def return_non_json(ctx: Context, order: Order) -> Any:
    return object()


def tell(ctx: Context, order: Order) -> Any:
    ctx.progress(25, "a quarter")
    ctx.heartbeat()
    ctx.log.info("first", size=3, place=Path("here"))
    ctx.log.warning("second")
    facts = {
        "job_id": str(ctx.job_id),
        "kind": ctx.kind,
        "queue": ctx.queue,
        "attempt": ctx.attempt,
        "max_attempts": ctx.max_attempts,
        "fence": ctx.fence,
        "worker_id": str(ctx.worker_id),
        "is_retry": ctx.is_retry,
        "is_last_attempt": ctx.is_last_attempt,
        "auth": ctx.auth,
        "meta": ctx.meta,
        "schedule": ctx.schedule,
        "input": ctx.input["act"],
        "aborted": ctx.signal.aborted,
    }
    if ctx.attempt == 1:
        raise ValueError("once more")
    return Receipt(number=0, order=Order(act="told", text=json.dumps(facts)))


def exit_at_once(ctx: Context, order: Order) -> Any:
    note(order, attempt=ctx.attempt)
    os._exit(0)


def kill_itself(ctx: Context, order: Order) -> Any:
    note(order, attempt=ctx.attempt)
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(LONG)


def die_before_a_child(ctx: Context, order: Order) -> Any:
    """As a process pool of the handler's own may: what it forked would continue, with all that it inherited."""
    forked = os.fork()
    if forked == 0:
        time.sleep(LONG)
        os._exit(0)
    note(order, forked=forked)
    os.kill(os.getpid(), signal.SIGKILL)


ACTS: dict[str, Callable[[Context, Order], Any]] = {
    fn.__name__: fn
    for fn in (
        give, decide, fail, give_up, raise_named, return_non_json, tell, exit_at_once, kill_itself, die_before_a_child,
    )
}  # fmt: skip


# The handlers


def plain(ctx: Context, order: Order) -> Receipt | Snooze | Fail | Cancel:
    match order.act:
        case "wait":
            note(order, event="start", attempt=ctx.attempt, fence=ctx.fence)
            try:
                ctx.signal.wait_sync(LONG)
                ctx.signal.check()
            finally:
                note(order, event="end", reason=ctx.signal.reason)
        case "wait_for_release":
            note(order, event="start", attempt=ctx.attempt, fence=ctx.fence)
            while not (Path(order.folder) / "release").exists():
                ctx.signal.check()
                time.sleep(0.01)
        case "hand_on":
            child = JOBS["loop"].enqueue_sync(Order(act="give"))
            return Receipt(number=0, order=Order(act="handed_on", text=str(child.id)))
    return ACTS.get(order.act, give)(ctx, order)


async def coroutine(ctx: Context, order: Order) -> Receipt | Snooze | Fail | Cancel:
    match order.act:
        case "wait":
            note(order, event="start", attempt=ctx.attempt, fence=ctx.fence)
            try:
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                note(order, event="end", reason=ctx.signal.reason)
                raise
        case "wait_for_release":
            note(order, event="start", attempt=ctx.attempt, fence=ctx.fence)
            while not (Path(order.folder) / "release").exists():  # noqa: ASYNC110 - opened by another process
                await asyncio.sleep(0.01)
        case "hand_on":
            child = await JOBS["loop"].enqueue(Order(act="give"))
            return Receipt(number=0, order=Order(act="handed_on", text=str(child.id)))
    return ACTS.get(order.act, give)(ctx, order)


def plain_deed(ctx: Context, name: str) -> Any:
    return hostile.DEEDS[name](ctx)


async def deed(ctx: Context, name: str) -> Any:
    return hostile.DEEDS[name](ctx)


def jobs(suffix: str, function: Any, coroutine_function: Any, **options: Any) -> dict[str, Job[..., ..., Any, Any]]:
    """The same job for each executor."""
    made = {}
    for executor in EXECUTORS:
        run_in, _, is_async = executor.partition("_")
        handler = coroutine_function if is_async or run_in == "loop" else function
        made[executor] = app.job(name=f"{executor}_{suffix}", run_in=run_in, **options)(handler)
    return made


JOBS = jobs("job", plain, coroutine, retry=Retry(2, initial="10ms", jitter=False, give_up_on=Final))
HURRIED = jobs("hurried", plain, coroutine, timeout="100ms", max_attempts=1)
DEEDS = jobs("deed", plain_deed, deed, max_attempts=1)


@app.job(run_in="process", timeout="2s", max_attempts=1)
def stubborn_process(ctx: Context, order: Order) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(order, event="start")
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        with suppress(BaseException):
            time.sleep(0.1)


STUBBORN = stubborn_process
