"""Turns the client's counts into rows for the live display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from tenure.cli.live_display import CountRow
from tenure.client.overview import Stats
from tenure.model.states import FINISHED, HELD, State

Tally = Counter[tuple[str, str]]
"""The number of jobs by group and by part: done, running or waiting."""

PARTS = ("done", "running", "waiting")


def tally(stats: Stats, group: Callable[[str, str], str | None]) -> Tally:
    """`group` returns the row for a queue and a kind, or None to ignore it."""
    found: Tally = Counter()
    for live in stats.live:
        if name := group(live.queue, live.kind):
            found[name, _part(live.state)] += live.jobs
    for finished in stats.finished:
        if finished.what in FINISHED and (name := group(finished.queue, finished.kind)):
            found[name, "done"] += finished.jobs
    return found


def _part(state: State) -> str:
    if state is State.DEAD_LETTER:
        return "done"
    return "running" if state in HELD else "waiting"


def rows(found: Tally, names: Iterable[str]) -> list[CountRow]:
    return [CountRow(name, *(max(0, found[name, part]) for part in PARTS)) for name in names]


def outcomes(stats: Stats, group: Callable[[str, str], str | None]) -> Counter[str]:
    """Attempts and jobs by outcome. Dead letters are those that exist now: a replayed one no longer counts."""
    found: Counter[str] = Counter()
    for finished in stats.finished:
        if finished.what != State.DEAD_LETTER and group(finished.queue, finished.kind):
            found[finished.what] += finished.jobs
    for live in stats.live:
        if live.state is State.DEAD_LETTER and group(live.queue, live.kind):
            found[live.state] += live.jobs
    return found
