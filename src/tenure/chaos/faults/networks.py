"""What happens between: connections cut, silent, slow, or lost with an answer on them; a pooler that dies."""

from __future__ import annotations

import asyncio
from random import Random

from tenure.chaos.field import Field, NotNow
from tenure.chaos.wire import Moment

MOMENTS: tuple[Moment, ...] = ("before", "during", "after", "after")
ROLES = ("claim", "settle", "lease", "leader", None)
PATIENCE = 2.0  # seconds until somebody says something


async def cut(field: Field, draws: Random) -> str:
    name, wire = field.a_wire(draws)
    return f"{wire.cut()} connections of {name}"


async def silence(field: Field, draws: Random) -> str:
    """Half-open: nothing comes through, nobody is told."""
    name, wire = field.a_wire(draws)
    seconds = draws.uniform(1, 2 * field.lease)
    return f"{await wire.hush(seconds)} connections of {name}, for {seconds:.1f} s"


async def slow(field: Field, draws: Random) -> str:
    name, wire = field.a_wire(draws)
    seconds = draws.uniform(2, 5)
    await wire.slow_down(0.2, seconds)
    return f"{name}: 200 ms each way, for {seconds:.1f} s"


async def lose_answer(field: Field, draws: Random) -> str:
    """The connection breaks around a commit: before the server heard of it, while it works, or when only the answer is left."""
    name, wire = field.a_wire(draws)
    moment, role = draws.choice(MOMENTS), draws.choice(ROLES)
    sprung = wire.lose_answer(None if name == "clients" else role, moment=moment)
    try:
        await asyncio.wait_for(sprung, PATIENCE)
    except TimeoutError:
        wire.spare()
        raise NotNow(f"{name} said nothing as {role}") from None
    return f"{name}, {role or 'anybody'}, {moment} the commit"


async def kill_pooler(field: Field, draws: Random) -> str:
    if field.pooler is None:
        raise NotNow("there is no pooler")
    field.pooler.kill()
    await asyncio.sleep(draws.uniform(0, 1))
    field.pooler.start()
    return "PgBouncer"
