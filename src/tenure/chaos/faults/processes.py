"""Processes that die or freeze."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from random import Random

from tenure.chaos.field import Field, NotNow, Struck
from tenure.chaos.fleet import Worker


async def kill_child(field: Field, draws: Random) -> str:
    worker, child = _a_child(field, draws)
    _send(child, signal.SIGKILL)
    return f"{worker.name}, process {child}"


async def kill_supervisor(field: Field, draws: Random) -> str:
    """Its children follow it."""
    worker = field.a_worker(draws)
    field.fleet.doom(worker)
    _send(worker.pid, signal.SIGKILL)
    return worker.name


async def kill_worker(field: Field, draws: Random) -> str:
    worker = field.a_worker(draws)
    field.fleet.doom(worker)
    worker.kill_all()
    return f"{worker.name}, all of it"


async def stop_worker(field: Field, draws: Random) -> str:
    """As a deployment does it. The worker has its grace; whatever else happens to it meanwhile."""
    worker, _ = _a_child(field, draws)  # it serves: before that it has nothing to stop, and SIGTERM ends it at once
    field.fleet.dismiss(worker)
    _send(worker.pid, signal.SIGTERM)
    return worker.name


async def kill_leader(field: Field, draws: Random) -> str:
    duty = draws.choice(["stager", "reaper"])
    rows = await field.ask("select (metadata ->> 'pid')::int from tenure.leases where name = %s", duty)
    for worker in field.fleet.workers:
        if worker.alive and rows and worker.pid == rows[0][0] and worker.name != field.sheltered:
            field.fleet.doom(worker)
            worker.kill_all()
            return f"{worker.name}, which led {duty}"
    raise NotNow(f"no worker that may be struck leads {duty}")


async def stop_child(field: Field, draws: Random) -> Struck:
    worker, child = _a_child(field, draws)
    seconds = _beyond_the_lease(field, draws)
    await freeze(child, seconds)
    return Struck(f"{worker.name}, process {child}, for {seconds:.1f} s", stopped=(child,))


async def stop_supervisor(field: Field, draws: Random) -> str:
    worker = field.a_worker(draws)
    seconds = _beyond_the_lease(field, draws)
    await freeze(worker.pid, seconds)
    return f"{worker.name}, for {seconds:.1f} s"


def _a_child(field: Field, draws: Random) -> tuple[Worker, int]:
    worker = field.a_worker(draws)
    children = worker.children()
    if not children:
        raise NotNow(f"{worker.name} has no children")
    return worker, draws.choice(children)


def _beyond_the_lease(field: Field, draws: Random) -> float:
    return field.lease * draws.uniform(1.2, 3)


async def freeze(pid: int, seconds: float) -> None:
    _send(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        _send(pid, signal.SIGCONT)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
