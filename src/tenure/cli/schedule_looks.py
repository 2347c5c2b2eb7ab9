"""`tenure schedules list`, `show` and `next`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import click

from tenure.cli import output
from tenure.cli.asking import Asker, asks
from tenure.cli.output import Column
from tenure.client.report.words import value
from tenure.client.schedule_status import ScheduleStatus, Tick
from tenure.model.durations import format_duration
from tenure.model.errors import ScheduleNotFound

LIST = (
    Column("SCHEDULE", flexible=True),
    Column("KIND", flexible=True),
    Column("WHEN", flexible=True),
    Column("NEXT", right=True),
    Column("LAST", right=True),
    Column("OWNER", flexible=True, spare=True),
)
TICKS = (Column("PLANNED"), Column("OUTCOME"), Column("RECORDED", right=True), Column("JOB"))
LAST_TICKS = 10
NEXT_TIMES = 5


@click.command("list")
@asks
@click.option("--all", "retired", is_flag=True, help="Also those that are retired.")
@click.option("--owner", help="Those that this app's code declares.")
async def list_(ask: Asker, retired: bool, owner: str | None) -> None:
    """All schedules, and when each runs next."""
    found = await ask.app.schedules.list(retired=retired, owner=owner)
    if ask.as_json:
        output.emit({"schedules": [schedule.to_json() for schedule in found]})
    elif found:
        output.show_table(LIST, [_row(schedule) for schedule in found])
    else:
        output.say("there are no schedules: declare one by @app.cron(...), or make one by `tenure schedules create`")


def _row(schedule: ScheduleStatus) -> tuple[object, ...]:
    due = output.ago(schedule.next_at, schedule.asked_at) if schedule.active else standing(schedule)
    last = output.ago(schedule.last_at, schedule.asked_at)
    return schedule.name, schedule.kind, schedule.words, due, last, schedule.owner or "-"


def standing(schedule: ScheduleStatus) -> str:
    if schedule.retired_at is not None:
        return "retired"
    return "paused" if schedule.paused else "active"


@click.command()
@asks
@click.argument("name")
async def show(ask: Asker, name: str) -> None:
    """A schedule, its next runs, and what became of the last ones."""
    schedule = await found(ask, name)
    ticks = await ask.app.schedules.ticks(name, limit=LAST_TICKS)
    if ask.as_json:
        upcoming = schedule.upcoming(NEXT_TIMES) if schedule.active else []
        output.emit({**schedule.to_json(), "upcoming": upcoming, "ticks": [tick.to_json() for tick in ticks]})
        return
    output.show_pairs([*_facts(schedule)])
    if schedule.active:
        for line in spoken(schedule, NEXT_TIMES):
            click.echo(f"next  {line}")
    if ticks:
        output.show_table(TICKS, [_tick(tick, schedule) for tick in ticks])


def _facts(schedule: ScheduleStatus) -> Iterator[tuple[str, object]]:
    yield "schedule", schedule.name
    yield "state", standing(schedule)
    yield "when", schedule.words
    yield "cron", schedule.cron
    yield "kind", schedule.kind
    yield "input", value(schedule.input)
    yield "queue", f"{schedule.queue}, priority {schedule.priority}"
    yield "overlap", schedule.overlap
    yield (
        "catch up",
        f"{schedule.catch_up}, at most {schedule.catch_up_limit}" if schedule.catch_up == "all" else schedule.catch_up,
    )
    yield "jitter", format_duration(schedule.jitter) if schedule.jitter else None
    yield "owner", schedule.owner or "made by hand"
    yield "changed", output.moment(schedule.changed_at)
    yield "by", schedule.changed_by
    if schedule.paused:
        yield "paused", f"{output.moment(schedule.paused_at)}" + (f" by {schedule.paused_by}" if schedule.paused_by else "")
        yield "because", schedule.pause_reason
    yield "retired", output.moment(schedule.retired_at)


def _tick(tick: Tick, schedule: ScheduleStatus) -> tuple[object, ...]:
    planned = clock(tick.planned_at, schedule)
    if tick.until is not None and tick.times > 1:
        planned += f" to {clock(tick.until, schedule)}, {tick.times} times"
    outcome = tick.outcome + (" late" if tick.is_late and tick.job_id else "") + (f" by {tick.by}" if tick.by else "")
    return planned, outcome, output.ago(tick.recorded_at, schedule.asked_at), tick.job_id


@click.command("next")
@asks
@click.argument("name")
@click.option("--count", "-n", type=click.IntRange(1, 1000), default=NEXT_TIMES, show_default=True, help="How many.")
async def next_(ask: Asker, name: str, count: int) -> None:
    """When a schedule runs next, in its own time zone."""
    schedule = await found(ask, name)
    if ask.as_json:
        upcoming = schedule.upcoming(count) if schedule.active else []
        output.emit({"schedule": name, "words": schedule.words, "state": standing(schedule), "upcoming": upcoming})
        return
    click.echo(output.safe(f"{name} runs {schedule.words}"))
    if not schedule.active:
        output.say(f"but it is {standing(schedule)}, so nothing is planned")
        return
    for line in spoken(schedule, count):
        click.echo(line)


def spoken(schedule: ScheduleStatus, count: int) -> Iterator[str]:
    for planned in schedule.upcoming(count):
        yield f"{planned:%a %Y-%m-%d %H:%M:%S %Z}  ({output.ago(planned, schedule.asked_at)})"


def clock(moment: datetime, schedule: ScheduleStatus) -> str:
    zone = schedule.upcoming(1)[0].tzinfo
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M:%S %Z}"


async def found(ask: Asker, name: str) -> ScheduleStatus:
    schedule = await ask.app.schedules.find(name)
    if schedule is None:
        raise ScheduleNotFound(name)
    return schedule
