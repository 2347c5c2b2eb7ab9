"""A NOTIFY queue that is full, because a session listens and stays in its transaction."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

import psycopg
from psycopg.errors import ProgramLimitExceeded

from tenure.chaos.field import Field, NotNow

PAGES = 64
"""The smallest queue that PostgreSQL allows. The embedded server has this one; the usual one takes minutes to fill."""

SINCE = 17
"""The version of PostgreSQL whose queue can be made small."""

MOST_MESSAGES = 10 * PAGES
NOISE = "x" * 7000


EMPTY = "select pg_notification_queue_usage()"
"""PostgreSQL removes what all listeners have read when something is sent, and a full queue takes nothing: it stays full until
this function is called, even when no listener lags any more."""

_at_work = asyncio.Lock()


async def fill_notify(field: Field, draws: Random) -> str:
    if _at_work.locked():
        raise NotNow("the queue is full already")
    seconds = draws.uniform(1, 8)
    async with _at_work:
        try:
            sent = await _fill(field, seconds)
        finally:
            with suppress(psycopg.Error, OSError):
                await empty_queue(field)
    return f"full after {sent} messages, for {seconds:.1f} s"


async def empty_queue(field: Field) -> None:
    await field.ask(EMPTY)


async def _fill(field: Field, seconds: float) -> int:
    async with await field.connect() as listener, await field.connect() as sender:
        await listener.execute("listen chaos_noise")
        async with listener.transaction():
            await listener.execute("select 1")
            for sent in range(MOST_MESSAGES):
                try:
                    await sender.execute("select pg_notify('chaos_noise', %s)", [f"{sent} {NOISE}"])
                except ProgramLimitExceeded:
                    await asyncio.sleep(seconds)
                    return sent
    raise NotNow(f"the queue took {MOST_MESSAGES} messages and was not full")
