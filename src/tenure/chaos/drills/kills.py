"""kill -9: seconds until the jobs that ran there run again."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable

from tenure.chaos import jobs
from tenure.chaos.drills.environment import DrillEnvironment, DrillResult, open_environment, percentile, until
from tenure.chaos.workers import CampaignWorker

PROCESS_KILLS = 40
PROCESSES = 6
MACHINE_KILLS = 4
JOBS = 20
LONG = 300.0  # seconds a job would run
START_TIMEOUT = 30.0
GOAL_PROCESS = 2.0  # seconds
GOAL_MACHINE = 20.0


async def killed_processes(show: Callable[[str], None]) -> DrillResult:
    async with open_environment() as environment:
        # Enough processes that none is killed soon after its start: after repeated deaths, the replacement is delayed.
        worker = environment.start_worker("--processes", str(PROCESSES), "--concurrency", str(JOBS))
        await until(lambda: environment.ready_processes() == PROCESSES, within=START_TIMEOUT)
        waits: list[float] = []
        for kill in range(PROCESS_KILLS):
            waits += await _kill_one(environment, [worker], whole=False)
            await until(lambda: environment.ready_processes() == PROCESSES, within=START_TIMEOUT)
            if kill % 10 == 9:
                show(f"{kill + 1} processes killed: p99 {percentile(waits, 0.99):.2f} s")
    return _result("killed_processes", waits, PROCESS_KILLS, GOAL_PROCESS)


async def killed_machines(show: Callable[[str], None]) -> DrillResult:
    async with open_environment() as environment:
        workers = [environment.start_worker("--processes", "1", "--concurrency", str(JOBS)) for _ in range(2)]
        await until(lambda: environment.ready_processes() == 2, within=START_TIMEOUT)
        waits: list[float] = []
        for kill in range(MACHINE_KILLS):
            await asyncio.sleep(10)  # the leader condemns workers only after ten seconds of contact
            waits += await _kill_one(environment, workers, whole=True)
            for worker in workers:
                if not worker.alive:
                    worker.start()
            await until(lambda: environment.ready_processes() == 2, within=START_TIMEOUT)
            show(f"{kill + 1} workers killed: p99 {percentile(waits, 0.99):.1f} s")
    return _result("killed_machines", waits, MACHINE_KILLS, GOAL_MACHINE)


async def _kill_one(environment: DrillEnvironment, workers: list[CampaignWorker], *, whole: bool) -> list[float]:
    """Runs jobs on all processes and kills one of them. Returns, for each job that ran there, the seconds until it ran again."""
    handles = await jobs.app.enqueue_many([jobs.brief.call(number, LONG) for number in range(JOBS)])
    ids = {str(handle.id) for handle in handles}
    await until(lambda: len({run.job for run in environment.runs() if run.job in ids}) == JOBS, within=START_TIMEOUT)
    running = [run for run in environment.runs() if run.job in ids]
    victim = min(run.pid for run in running)
    worker = next(worker for worker in workers if victim in worker.children())
    fences = {run.job: run.fence for run in running if run.pid == victim}
    killed = time.time()
    if whole:
        worker.kill_all()
    else:
        os.kill(victim, signal.SIGKILL)

    def started_again() -> dict[str, float]:
        return {
            run.job: run.at for run in environment.runs() if run.fence > fences.get(run.job, run.fence) and run.what == "started"
        }

    await until(lambda: len(started_again()) == len(fences), within=3 * GOAL_MACHINE)
    waits = [at - killed for at in started_again().values()] + [3 * GOAL_MACHINE] * (len(fences) - len(started_again()))
    await jobs.app.client().cancel(*ids)
    return waits


def _result(name: str, waits: list[float], kills: int, goal: float) -> DrillResult:
    p99 = percentile(waits, 0.99)
    measured = f"{kills} kills, {len(waits)} jobs: p50 {percentile(waits, 0.5):.2f} s, p99 {p99:.2f} s"
    return DrillResult(name, f"all running again within {goal:g} s (p99)", measured, p99 <= goal)
