"""Rows that PostgreSQL refuses to change, one in a batch of many: `chaos.refuse` in recorder.sql raises."""

from __future__ import annotations

import asyncio
from random import Random

from tenure.chaos.field import Field

MOMENTS = ("claim", "finish", "move", "promote", "replay", "return", "start", "record")
CODES = ("AUDIT", "TN042", "42501", "0A000", "XX000", "23514", "22023", "P0001", "55000", "2F000", "08001", "55P03", "40001")
"""SQLSTATEs: of a trigger of the user's own, missing rights, features, internal errors, constraints, values; and, raised by a
trigger, those that otherwise mean an outage, a lock or a conflict."""

RUNNING = "select j.id from tenure.jobs j where j.claim_id is not null order by random() limit %s for update skip locked"

REFUSE = """
    insert into chaos.refusals (moment, code, until) values (%s, %s, clock_timestamp() + make_interval(secs => %s))
    on conflict (moment) do update set code = excluded.code, until = excluded.until"""


async def refuse_rows(field: Field, draws: Random) -> str:
    """Ends by itself: what is refused is refused until a moment that is written down with it."""
    seconds = draws.uniform(1, 8)
    moments = draws.sample(MOMENTS, draws.randint(1, len(MOMENTS)))
    code = draws.choice(CODES)
    for moment in moments:
        await field.ask(REFUSE, moment, code, seconds)
    await asyncio.sleep(seconds)
    return f"{', '.join(moments)} with {code}, for {seconds:.1f} s"


async def lock_rows(field: Field, draws: Random) -> str:
    """As a transaction of the user's that cancels jobs and stays open."""
    seconds = draws.uniform(1, 8)
    async with await field.connect() as connection, connection.transaction():
        found = await connection.execute(RUNNING, [draws.randint(1, 5)])
        await asyncio.sleep(seconds)
    return f"{found.rowcount} running jobs, for {seconds:.1f} s"


async def accept_rows(field: Field) -> None:
    await field.ask("delete from chaos.refusals")
