"""The network: connections that are cut, silent, slow, or lost together with an answer; a pooler that dies."""

from __future__ import annotations

import asyncio
from random import Random

from tenure.chaos.faults.base import FaultResult, FaultSkipped
from tenure.chaos.proxy import Moment
from tenure.chaos.testbed import Testbed

MOMENTS: tuple[Moment, ...] = ("before", "during", "after", "after")
ROLES = ("claim", "settle", "lease", "leader", None)
STATEMENT_TIMEOUT = 2.0  # seconds to wait for a statement


async def cut(testbed: Testbed, random: Random) -> FaultResult:
    """Ended in order, or by a TCP reset: event loops notice the two in different ways."""
    name, proxy = testbed.pick_proxy(random)
    if random.random() < 0.5:
        return FaultResult(f"{proxy.cut()} connections of {name}")
    return FaultResult(f"{proxy.reset()} connections of {name}, reset")


async def silence(testbed: Testbed, random: Random) -> FaultResult:
    """Half-open connections: nothing is forwarded, and neither side is notified."""
    name, proxy = testbed.pick_proxy(random)
    seconds = random.uniform(1, 2 * testbed.lease)
    return FaultResult(f"{await proxy.silence(seconds)} connections of {name}, for {seconds:.1f} s")


async def slow(testbed: Testbed, random: Random) -> FaultResult:
    name, proxy = testbed.pick_proxy(random)
    seconds = random.uniform(2, 5)
    await proxy.slow_down(0.2, seconds)
    return FaultResult(f"{name}: 200 ms each way, for {seconds:.1f} s")


async def lose_answer(testbed: Testbed, random: Random) -> FaultResult:
    """The connection breaks around a commit: before the server receives it, while it works, or before the answer is forwarded."""
    name, proxy = testbed.pick_proxy(random)
    moment, role = random.choice(MOMENTS), random.choice(ROLES)
    lost = proxy.lose_answer(None if name == "clients" else role, moment=moment)
    try:
        await asyncio.wait_for(lost, STATEMENT_TIMEOUT)
    except TimeoutError:
        proxy.keep_answers()
        raise FaultSkipped(f"{name} sent no statement on a connection for {role}") from None
    return FaultResult(f"{name}, {role or 'any connection'}, {moment} the commit")


async def kill_pooler(testbed: Testbed, random: Random) -> FaultResult:
    if testbed.pooler is None:
        raise FaultSkipped("the testbed has no pooler")
    if not testbed.pooler.runs:
        raise FaultSkipped("PgBouncer is down already")
    testbed.pooler.kill()
    await asyncio.sleep(random.uniform(0, 1))
    testbed.pooler.start()
    return FaultResult("PgBouncer")


async def start_pooler(testbed: Testbed) -> None:
    if testbed.pooler is not None:
        testbed.pooler.start()
