"""Processes that die or freeze."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from random import Random

from tenure.chaos.faults.base import FaultResult, FaultSkipped
from tenure.chaos.testbed import Testbed
from tenure.chaos.workers import CampaignWorker


async def kill_child(testbed: Testbed, random: Random) -> FaultResult:
    worker, child = _pick_child(testbed, random)
    _send(child, signal.SIGKILL)
    return FaultResult(f"{worker.name}, process {child}")


async def kill_supervisor(testbed: Testbed, random: Random) -> FaultResult:
    """Its children exit by themselves."""
    worker = testbed.pick_worker(random)
    testbed.workers.expect_kill(worker)
    _send(worker.pid, signal.SIGKILL)
    return FaultResult(worker.name)


async def kill_worker(testbed: Testbed, random: Random) -> FaultResult:
    worker = testbed.pick_worker(random)
    testbed.workers.expect_kill(worker)
    worker.kill_all()
    return FaultResult(f"{worker.name}, supervisor and children")


async def stop_worker(testbed: Testbed, random: Random) -> FaultResult:
    """Like a deployment: the worker shuts down within its grace period. Other faults may hit it meanwhile."""
    worker, _ = _pick_child(testbed, random)  # it has children: before that, SIGTERM ends it at once
    testbed.workers.expect_stop(worker)
    _send(worker.pid, signal.SIGTERM)
    return FaultResult(worker.name)


async def kill_leader(testbed: Testbed, random: Random) -> FaultResult:
    duty = random.choice(["stager", "reaper"])
    rows = await testbed.fetch("select (metadata ->> 'pid')::int from tenure.leases where name = %s", duty)
    for worker in testbed.workers.workers:
        if worker.alive and rows and worker.pid == rows[0][0] and worker.name != testbed.spared:
            testbed.workers.expect_kill(worker)
            worker.kill_all()
            return FaultResult(f"{worker.name}, which led {duty}")
    raise FaultSkipped(f"no worker that may be killed leads {duty}")


async def kill_web(testbed: Testbed, _random: Random) -> FaultResult:
    web = testbed.workers.web
    if web is None or not web.alive:
        raise FaultSkipped("the web server does not run")
    testbed.workers.expect_kill(web)
    web.kill_all()
    return FaultResult("the web server")


async def stop_child(testbed: Testbed, random: Random) -> FaultResult:
    worker, child = _pick_child(testbed, random)
    seconds = _longer_than_lease(testbed, random)
    await freeze(child, seconds)
    return FaultResult(f"{worker.name}, process {child}, for {seconds:.1f} s", stopped=(child,))


async def stop_supervisor(testbed: Testbed, random: Random) -> FaultResult:
    worker = testbed.pick_worker(random)
    seconds = _longer_than_lease(testbed, random)
    await freeze(worker.pid, seconds)
    return FaultResult(f"{worker.name}, for {seconds:.1f} s")


def _pick_child(testbed: Testbed, random: Random) -> tuple[CampaignWorker, int]:
    worker = testbed.pick_worker(random)
    children = worker.children()
    if not children:
        raise FaultSkipped(f"{worker.name} has no children")
    return worker, random.choice(children)


def _longer_than_lease(testbed: Testbed, random: Random) -> float:
    return testbed.lease * random.uniform(1.2, 3)


async def freeze(pid: int, seconds: float) -> None:
    _send(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        _send(pid, signal.SIGCONT)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
