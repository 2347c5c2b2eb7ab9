"""The jobs of `tenure demo`: the background work of a small shop, its usual failures, and how each job must end."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tenure import Call, Context, JobStatus, Retry, State, Tenure

app = Tenure()

TICK = 0.1
"""Seconds between two batches of the stream."""

WRONG_DOMAIN = "exmaple.org"


@app.job(queue="mail", priority="high")
async def send_receipt(order: int) -> str:
    """Short and frequent."""
    await asyncio.sleep(0.12)
    return f"receipt for order {order} sent"


@app.job(queue="mail", priority="low")
async def send_newsletter(reader: int) -> int:
    """Enqueued in a burst."""
    return reader


@app.job(queue="mail", retry=Retry(max_attempts=2, initial="200ms"))
async def send_invoice(order: int, address: str) -> str:
    """Fails while the address is wrong."""
    if address.endswith(f"@{WRONG_DOMAIN}"):
        raise LookupError(f"{address}: no such domain")
    return f"invoice {order} sent to {address}"


@app.job(queue="payments", priority="high", retry=Retry(max_attempts=4, initial="300ms"))
async def charge_card(ctx: Context, order: int) -> str:
    """The first attempt fails."""
    await asyncio.sleep(0.1)
    if ctx.attempt == 1:
        raise ConnectionError("the bank did not answer")
    return f"order {order} charged on attempt {ctx.attempt}"


@app.job(queue="media")
async def make_thumbnail(photo: int) -> str:
    await asyncio.sleep(0.2)
    return f"photo {photo}, 160 x 90"


@app.job(queue="media")
def encode_video(ctx: Context, film: int) -> str:
    """A plain function: runs in a thread, and reports progress."""
    for step in range(1, 26):
        time.sleep(0.1)
        ctx.progress(step * 4, f"{step * 40} of 1000 frames")
    return f"film {film}, 720p"


@app.job(queue="media", priority="critical")
async def open_upload(name: str) -> None:
    """A poison pill: crashes its process, and with it every job that runs there."""
    os._exit(len(name))


@app.job(queue="reports")
async def monthly_report(ctx: Context, month: int) -> str:
    for step in range(1, 21):
        await asyncio.sleep(0.1)
        ctx.progress(step * 5, f"{step * 500} of 10000 rows")
    return f"report for month {month}"


QUEUES = ("mail", "payments", "media", "reports")


LONG = ("encode_video", "monthly_report")
"""Jobs that take seconds and report progress."""


def stream(tick: int) -> list[Call[Any]]:
    """The jobs to enqueue at this tick."""
    order = 1000 + 3 * tick
    batch: list[Call[Any]] = [send_receipt.call(order + more) for more in range(3)]
    if tick % 4 == 0:
        batch.append(charge_card.call(order))
    if tick % 3 == 0:
        batch.append(make_thumbnail.call(order))
    if tick % 6 == 0:
        batch.append(encode_video.call(tick // 6 + 1))
    if tick % 10 == 5:
        batch.append(monthly_report.call(tick // 10 + 1))
    return batch


def label(kind: str, given: Mapping[str, Any]) -> str:
    """A short label for a job."""
    return f"{kind} {next(iter(given.values()))}"


class ExpectedEnding(NamedTuple):
    state: State = State.COMPLETED
    attempts: int = 1


ENDINGS = {
    "charge_card": ExpectedEnding(attempts=2),
    "open_upload": ExpectedEnding(State.DEAD_LETTER, attempts=0),  # a crash does not use an attempt
}
"""All others complete on the first attempt, even if their process crashed."""


def differences(jobs: list[JobStatus]) -> Iterator[str]:
    """How these jobs differ from the expected outcome."""
    for job in jobs:
        wanted = ENDINGS.get(job.kind, ExpectedEnding())
        if (job.state, job.attempt) != wanted:
            yield (
                f"{label(job.kind, job.input)} ({job.id}) is {job.state} after {job.attempt} attempts;"
                f" expected {wanted.state} after {wanted.attempts}"
            )
