"""`tenure stats`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import click

from tenure.cli import output
from tenure.cli.asking import Asker, asks
from tenure.cli.output import Column
from tenure.client.overview import FinishedCount, LiveCount, Stats
from tenure.client.rates import Latency, MinuteCount
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

WHAT = ("enqueued", "started", "completed", "failed", "canceled", "retry", "dead_letter")
RATES = (
    Column("QUEUE", flexible=True),
    Column("KIND", flexible=True),
    *(Column(what.upper().replace("_", " "), right=True) for what in WHAT),
)
LATENCIES = (
    Column("QUEUE", flexible=True),
    Column("KIND", flexible=True),
    Column("TIME"),
    Column("JOBS", right=True),
    Column("P50", right=True),
    Column("P95", right=True),
    Column("P99", right=True),
)


@click.command()
@click.option("--last", metavar="DURATION", help="Rates and latencies of so long instead, such as 15m or 1h.")
@asks
async def stats(ask: Asker, last: str | None) -> None:
    """How many live jobs there are, and how jobs and attempts ended in the last 90 days, with their average times.

    With --last: what came in, started and ended in that time (by the minute with --json, for a day), and how long it took.
    """
    if last is not None:
        await _recent(ask, last)
        return
    found = await ask.client.stats()
    if ask.as_json:
        output.emit(_document(found))
    elif found.live or found.finished:
        _show(found)
    else:
        output.say("there are no jobs, and none were finished in the last 90 days")


async def _recent(ask: Asker, last: str) -> None:
    minutes = await ask.client.minutes(last)
    latencies = await ask.client.latencies(last)
    if ask.as_json:
        output.emit({"minutes": minutes, "latencies": latencies})
    elif minutes or latencies:
        output.show_table(RATES, _rates(minutes))
        if latencies:
            click.echo()
            output.show_table(LATENCIES, [_latency(latency) for latency in latencies])
    else:
        output.say(f"nothing came in, started or ended in the last {last}")


def _rates(minutes: Sequence[MinuteCount]) -> list[tuple[object, ...]]:
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for count in minutes:
        row = sums.setdefault((count.queue, count.kind), dict.fromkeys(WHAT, 0))
        row[count.what] = row.get(count.what, 0) + count.jobs
    return [(*names, *(row[what] for what in WHAT)) for names, row in sorted(sums.items())]


def _latency(latency: Latency) -> tuple[object, ...]:
    spans = (_span(seconds) for seconds in (latency.p50, latency.p95, latency.p99))
    return latency.queue, latency.kind, latency.measure, latency.jobs, *spans


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
