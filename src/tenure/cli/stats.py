"""`tenure stats`."""

from __future__ import annotations

from datetime import timedelta

import click

from tenure.cli import output
from tenure.cli.asking import Asker, asks
from tenure.cli.output import Column
from tenure.client.overview import FinishedCount, LiveCount, Stats
from tenure.client.report.words import span

LIVE = (
    Column("QUEUE", flexible=True),
    Column("KIND", flexible=True),
    Column("STATE"),
    Column("JOBS", right=True),
    Column("OLDEST", right=True),
)
ENDED = (
    Column("QUEUE", flexible=True),
    Column("KIND", flexible=True),
    Column("ENDED"),
    Column("TIMES", right=True),
    Column("WAITED", right=True),
    Column("RAN", right=True),
)


@click.command()
@asks
async def stats(ask: Asker) -> None:
    """How many live jobs there are, and how jobs and attempts ended in the last 90 days, with their average times."""
    found = await ask.client.stats()
    if ask.as_json:
        output.emit(_document(found))
    elif found.live or found.finished:
        _show(found)
    else:
        output.say("there are no jobs, and none were finished in the last 90 days")


def _document(found: Stats) -> dict[str, object]:
    ended = [
        {**output.plain(count), "average_wait": count.average_wait, "average_run": count.average_run} for count in found.finished
    ]
    return {"live": found.live, "finished": ended, "by_state": found.by_state, "by_outcome": found.by_outcome}


def _show(found: Stats) -> None:
    if found.live:
        output.show_table(LIVE, [_live(count) for count in sorted(found.live, key=lambda c: (c.queue, c.kind, c.state))])
    else:
        click.echo("no live jobs")
    if found.finished:
        click.echo()
        output.show_table(ENDED, [_ended(count) for count in sorted(found.finished, key=lambda c: (c.queue, c.kind, c.what))])


def _live(count: LiveCount) -> tuple[object, ...]:
    return count.queue, count.kind, count.state.value, count.jobs, output.ago(count.oldest_at)


def _ended(count: FinishedCount) -> tuple[object, ...]:
    return count.queue, count.kind, count.what, count.jobs, _span(count.average_wait), _span(count.average_run)


def _span(seconds: float | None) -> str:
    return "-" if seconds is None else span(timedelta(seconds=seconds))
