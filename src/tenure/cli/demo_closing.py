"""The end of `tenure demo`: every job accounted for, one of them told in full, and the numbers, all of them measured."""

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

from tenure.cli.demo_show import Show, span
from tenure.client.report.life import Report
from tenure.client.status import JobStatus
from tenure.model.states import State
from tenure.simulate import demo as shop

MOST_FAULTS = 10
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Numbers:
    handed_in: int
    completed: int
    set_aside: int
    retried: int
    cut_off: int
    """Runs that ended with their process."""
    wait: float
    """Seconds; the median."""
    waits: int
    peak: int
    """Jobs that were finished within one second."""


async def faults(show: Show) -> list[str]:
    """What is not as it should be: jobs that are lost, that nobody handed in, or that ended otherwise."""
    found = {job.id: job async for job in show.client.iterate()}
    wanted = {handle.id: handle for handle in show.handles}
    lost = [f"{wanted[job_id].kind} ({job_id}) is lost" for job_id in wanted.keys() - found.keys()]
    strange = [f"{found[job_id].kind} ({job_id}) was never handed in" for job_id in found.keys() - wanted.keys()]
    return [*lost, *strange, *shop.differences(list(found.values()))]


async def numbers(show: Show) -> Numbers:
    jobs = [job async for job in show.client.iterate()]
    # Of those that waited for a free place only: a crowd waits for itself, and what came back has a story of its own.
    waits = [
        (job.started_at - job.enqueued_at).total_seconds()
        for job in jobs
        if job.fence == 1 and job.kind != "send_newsletter" and job.started_at
    ]
    return Numbers(
        handed_in=len(show.handles),
        completed=sum(job.state is State.COMPLETED for job in jobs),
        set_aside=sum(job.state is State.DEAD_LETTER for job in jobs),
        retried=sum(job.attempt > 1 for job in jobs),
        cut_off=sum(job.crashes for job in jobs),
        wait=median(waits),
        waits=len(waits),
        peak=_peak(jobs),
    )


def _peak(jobs: Sequence[JobStatus]) -> int:
    ends = sorted(job.finished_at for job in jobs if job.finished_at is not None)
    most = first = 0
    for last, end in enumerate(ends):
        while end - ends[first] > SECOND:
            first += 1
        most = max(most, last - first + 1)
    return most


async def interesting(show: Show) -> Report | None:
    """A job that was cut off and ran again: one that talks, if there is any, and was cut off no more than once."""
    handles = {handle.id: handle for handle in show.handles}
    found = [job for job_id in show.survivors if (job := await show.client.find(job_id)) is not None and job.crashes]
    found.sort(key=lambda job: (job.kind not in shop.LONG, job.crashes))
    return await handles[found[0].id].report() if found else None


def told(report: Report) -> Iterator[str]:
    """The report in short: its head, and its timeline."""
    sections = report.to_text().strip().split("\n\n")
    yield from (f"  {escape(line)}" for line in sections[0].splitlines())
    for section in sections[1:]:
        if section.startswith("timeline"):
            yield from (f"  {escape(line)}" for line in section.splitlines()[1:])


def summary(found: Numbers, processes: int) -> Iterator[str]:
    lines = [
        (f"{found.handed_in:,}", f"jobs handed in: {found.completed:,} completed, {found.set_aside} set aside"),
        (f"{found.retried}", "failed once, and completed at the second attempt"),
        (f"{processes + 1}", f"worker processes died, with {found.cut_off} runs under way in them"),
        (span(found.wait), f"from enqueue to start, the median of {found.waits} streamed jobs"),
        (f"{found.peak:,}", "jobs done in the best second"),
    ]
    width = max(len(figure) for figure, _ in lines)
    yield from (f"  [bold]{figure:>{width}}[/]  {words}" for figure, words in lines)


def next_steps(*, kept: bool) -> Iterator[str]:
    """`kept`: this demo stays up already."""
    me = program()
    steps = [
        *([] if kept else [(f"{me} demo --keep", "the same, and stay to look around")]),
        (f"{me} simulate --mix hostile", "everything goes wrong, as foretold"),
        (f"{me} init shop", "your own jobs: begin with a small jobs.py"),
        (f"cd shop && {me} dev", "run them"),
    ]
    width = max(len(command) for command, _ in steps)
    yield from (f"  [bold]{command:<{width}}[/]  {words}" for command, words in steps)


def program() -> str:
    """How this was called, so that it can be called again."""
    me = Path(sys.argv[0])
    if me.name == "__main__.py":
        return "python -m tenure"
    found = shutil.which("tenure")
    if found and Path(found).resolve() == me.resolve():
        return "tenure"
    return min(os.path.relpath(me), str(me.resolve()), key=len)


def first_faults(found: Sequence[str]) -> Iterator[str]:
    yield from (f"  {escape(fault)}" for fault in found[:MOST_FAULTS])
    if len(found) > MOST_FAULTS:
        yield f"  and {len(found) - MOST_FAULTS} more"
