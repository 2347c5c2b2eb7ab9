"""kill -9, and the seconds until the jobs that ran there run again."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable

from tenure.chaos import work
from tenure.chaos.drills.ground import Figure, Ground, ground, percentile, until
from tenure.chaos.fleet import Worker

PROCESSES = 40  # kills
CREW = 6
MACHINES = 4
JOBS = 20
LONG = 300.0  # seconds that a job would run
START = 30.0
UNDER_THE_MANAGER = 2.0
ELSEWHERE = 20.0


async def killed_processes(tell: Callable[[str], None]) -> Figure:
    async with ground() as laid:
        # So many that none is killed soon after its start: who dies again and again is replaced more and more slowly.
        worker = laid.worker("--processes", str(CREW), "--concurrency", str(JOBS))
        await until(lambda: laid.ready() == CREW, within=START)
        waits: list[float] = []
        for kill in range(PROCESSES):
            waits += await _strike(laid, [worker], whole=False)
            await until(lambda: laid.ready() == CREW, within=START)
            if kill % 10 == 9:
                tell(f"{kill + 1} processes killed: p99 {percentile(waits, 0.99):.2f} s")
    return _figure("killed_processes", waits, PROCESSES, UNDER_THE_MANAGER)


async def killed_machines(tell: Callable[[str], None]) -> Figure:
    async with ground() as laid:
        fleet = [laid.worker("--processes", "1", "--concurrency", str(JOBS)) for _ in range(2)]
        await until(lambda: laid.ready() == 2, within=START)
        waits: list[float] = []
        for kill in range(MACHINES):
            await asyncio.sleep(10)  # whoever leads must have been in contact for so long
            waits += await _strike(laid, fleet, whole=True)
            for worker in fleet:
                if not worker.alive:
                    worker.start()
            await until(lambda: laid.ready() == 2, within=START)
            tell(f"{kill + 1} workers killed: p99 {percentile(waits, 0.99):.1f} s")
    return _figure("killed_machines", waits, MACHINES, ELSEWHERE)


async def _strike(laid: Ground, fleet: list[Worker], *, whole: bool) -> list[float]:
    """Jobs on all processes, one of which dies. Gives the waits of those that ran there."""
    handles = await work.app.enqueue_many([work.brief.call(number, LONG) for number in range(JOBS)])
    ids = {str(handle.id) for handle in handles}
    await until(lambda: len({run.job for run in laid.runs() if run.job in ids}) == JOBS, within=START)
    running = [run for run in laid.runs() if run.job in ids]
    victim = min(run.pid for run in running)
    worker = next(worker for worker in fleet if victim in worker.children())
    struck = {run.job: run.fence for run in running if run.pid == victim}
    killed = time.time()
    if whole:
        worker.kill_all()
    else:
        os.kill(victim, signal.SIGKILL)

    def back() -> dict[str, float]:
        return {run.job: run.at for run in laid.runs() if run.fence > struck.get(run.job, run.fence) and run.what == "started"}

    await until(lambda: len(back()) == len(struck), within=3 * ELSEWHERE)
    waits = [at - killed for at in back().values()] + [3 * ELSEWHERE] * (len(struck) - len(back()))
    await work.app.client().cancel(*ids)
    return waits


def _figure(name: str, waits: list[float], kills: int, goal: float) -> Figure:
    p99 = percentile(waits, 0.99)
    measured = f"{kills} kills, {len(waits)} jobs: p50 {percentile(waits, 0.5):.2f} s, p99 {p99:.2f} s"
    return Figure(name, f"all running again within {goal:g} s (p99)", measured, p99 <= goal)
