"""The end of `tenure demo`: checks every job, prints the report of one, and the numbers of this run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median

from rich.markup import escape

from tenure.cli.demo_steps import DemoRun, span
from tenure.client.report.life import Report
from tenure.client.status import JobStatus
from tenure.model.states import State
from tenure.simulate import demo as shop

MAX_PROBLEMS = 10
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Numbers:
    enqueued: int
    completed: int
    dead_lettered: int
    retried: int
    crashed: int
    """Runs that ended because their process died."""
    wait: float
    """Median, in seconds."""
    waits: int
    peak: int
    """Most jobs that finished within one second."""


async def problems(run: DemoRun) -> list[str]:
    """Jobs that are lost, that were never enqueued, or that did not end as expected."""
    found = {job.id: job async for job in run.client.iterate()}
    wanted = {handle.id: handle for handle in run.handles}
    lost = [f"{wanted[job_id].kind} ({job_id}) is lost" for job_id in wanted.keys() - found.keys()]
    unknown = [f"{found[job_id].kind} ({job_id}) was never enqueued" for job_id in found.keys() - wanted.keys()]
    return [*lost, *unknown, *shop.differences(list(found.values()))]


async def numbers(run: DemoRun) -> Numbers:
    jobs = [job async for job in run.client.iterate()]
    # Without the newsletters, which wait for each other, and without jobs that ran more than once.
    waits = [
        (job.started_at - job.enqueued_at).total_seconds()
        for job in jobs
        if job.fence == 1 and job.kind != "send_newsletter" and job.started_at
    ]
    return Numbers(
        enqueued=len(run.handles),
        completed=sum(job.state is State.COMPLETED for job in jobs),
        dead_lettered=sum(job.state is State.DEAD_LETTER for job in jobs),
        retried=sum(job.attempt > 1 for job in jobs),
        crashed=sum(job.crashes for job in jobs),
        wait=median(waits),
        waits=len(waits),
        peak=_peak(jobs),
    )


def _peak(jobs: Sequence[JobStatus]) -> int:
    ends = sorted(job.finished_at for job in jobs if job.finished_at is not None)
    peak = first = 0
    for last, end in enumerate(ends):
        while end - ends[first] > SECOND:
            first += 1
        peak = max(peak, last - first + 1)
    return peak


async def crashed_job_report(run: DemoRun) -> Report | None:
    """The report of a job that crashed with its process and ran again: preferably one with progress and only one crash."""
    handles = {handle.id: handle for handle in run.handles}
    found = [job for job_id in run.crashed if (job := await run.client.find(job_id)) is not None and job.crashes]
    found.sort(key=lambda job: (job.kind not in shop.LONG, job.crashes))
    return await handles[found[0].id].report() if found else None


def report_lines(report: Report) -> Iterator[str]:
    """The head of the report, and its timeline."""
    sections = report.to_text().strip().split("\n\n")
    yield from (f"  {escape(line)}" for line in sections[0].splitlines())
    for section in sections[1:]:
        if section.startswith("timeline"):
            yield from (f"  {escape(line)}" for line in section.splitlines()[1:])


def summary_lines(found: Numbers, processes: int) -> Iterator[str]:
    lines = [
        (f"{found.enqueued:,}", f"jobs enqueued: {found.completed:,} completed, {found.dead_lettered} dead-lettered"),
        (f"{found.retried}", "failed once and completed on the second attempt"),
        (f"{processes + 1}", f"worker processes killed or crashed, with {found.crashed} runs in progress"),
        (span(found.wait), f"from enqueue to start (median of {found.waits:,} jobs)"),
        (f"{found.peak:,}", "jobs finished in the busiest second"),
    ]
    width = max(len(figure) for figure, _ in lines)
    yield from (f"  [bold]{figure:>{width}}[/]  {words}" for figure, words in lines)


def next_steps(*, kept: bool) -> Iterator[str]:
    """`kept`: this demo was started with --keep."""
    me = program()
    steps = [
        *([] if kept else [(f"{me} demo --keep", "repeat this demo and keep it running")]),
        (f"{me} simulate --mix hostile", "jobs that fail, hang and crash, each checked"),
        (f"{me} init shop", "create a project with a small jobs.py"),
        (f"cd shop && {program(start=Path('shop'))} dev", "run its workers"),
    ]
    width = max(len(command) for command, _ in steps)
    yield from (f"  [bold]{command:<{width}}[/]  {words}" for command, words in steps)


def program(start: Path = Path()) -> str:
    """The command that started this process, to be shown in examples that are typed in the folder `start`."""
    me = Path(sys.argv[0])
    if me.name == "__main__.py":
        return "python -m tenure"
    found = shutil.which("tenure")
    if found and Path(found).resolve() == me.resolve():
        return "tenure"
    return min(os.path.relpath(me, start), str(me.resolve()), key=len)


def first_problems(found: Sequence[str]) -> Iterator[str]:
    yield from (f"  {escape(problem)}" for problem in found[:MAX_PROBLEMS])
    if len(found) > MAX_PROBLEMS:
        yield f"  and {len(found) - MAX_PROBLEMS} more"
