"""`tenure stats`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import click

from tenure.cli import output
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.output import Column
from tenure.client.json_values import to_json_value
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
@click.option("--last", metavar="DURATION", help="Rates and latencies of this period instead, such as 15m or 1h.")
@with_context
async def stats(context: CommandContext, last: str | None) -> None:
    """Count live jobs, and the outcomes of jobs and attempts in the last 90 days, with average times.

    With --last: jobs enqueued, started and finished in that period (by minute with --json; kept for a day), and latencies.
    """
    if last is not None:
        await _recent(context, last)
        return
    found = await context.client.stats()
    if context.as_json:
        output.print_json(_document(found))
    elif found.live or found.finished:
        _show(found)
    else:
        output.note("no jobs, and none finished in the last 90 days")


async def _recent(context: CommandContext, last: str) -> None:
    minutes = await context.client.minutes(last)
    latencies = await context.client.latencies(last)
    if context.as_json:
        output.print_json({"minutes": minutes, "latencies": latencies})
    elif minutes or latencies:
        output.show_table(RATES, _rates(minutes))
        if latencies:
            click.echo()
            output.show_table(LATENCIES, [_latency(latency) for latency in latencies])
    else:
        output.note(f"no job was enqueued, started or finished in the last {last}")


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
        {**to_json_value(count), "average_wait": count.average_wait, "average_run": count.average_run} for count in found.finished
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
