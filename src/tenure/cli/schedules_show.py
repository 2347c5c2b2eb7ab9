"""`tenure schedules list`, `show` and `next`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import click

from tenure.cli import output
from tenure.cli.command_context import CommandContext, with_context
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
    Column("OWNER", flexible=True, optional=True),
)
TICKS = (Column("PLANNED"), Column("OUTCOME"), Column("RECORDED", right=True), Column("JOB"))
LAST_TICKS = 10
NEXT_TIMES = 5


@click.command("list")
@with_context
@click.option("--all", "retired", is_flag=True, help="Include retired schedules.")
@click.option("--owner", help="Only those that this app's code declares.")
async def list_(context: CommandContext, retired: bool, owner: str | None) -> None:
    """List schedules, and when each runs next."""
    found = await context.app.schedules.list(retired=retired, owner=owner)
    if context.as_json:
        output.print_json({"schedules": [schedule.to_json() for schedule in found]})
    elif found:
        output.show_table(LIST, [_row(schedule) for schedule in found])
    else:
        output.note("no schedules; declare one with @app.cron(...), or create one with `tenure schedules create`")


def _row(schedule: ScheduleStatus) -> tuple[object, ...]:
    due = output.ago(schedule.next_at, schedule.asked_at) if schedule.active else state_of(schedule)
    last = output.ago(schedule.last_at, schedule.asked_at)
    return schedule.name, schedule.kind, schedule.words, due, last, schedule.owner or "-"


def state_of(schedule: ScheduleStatus) -> str:
    if schedule.retired_at is not None:
        return "retired"
    return "paused" if schedule.paused else "active"


@click.command()
@with_context
@click.argument("name")
async def show(context: CommandContext, name: str) -> None:
    """Show a schedule, its next times, and the outcomes of the last ones."""
    schedule = await find_schedule(context, name)
    ticks = await context.app.schedules.ticks(name, limit=LAST_TICKS)
    if context.as_json:
        upcoming = schedule.upcoming(NEXT_TIMES) if schedule.active else []
        output.print_json({**schedule.to_json(), "upcoming": upcoming, "ticks": [tick.to_json() for tick in ticks]})
        return
    output.show_pairs([*_facts(schedule)])
    if schedule.active:
        for line in upcoming_lines(schedule, NEXT_TIMES):
            click.echo(f"next  {line}")
    if ticks:
        output.show_table(TICKS, [_tick(tick, schedule) for tick in ticks])


def _facts(schedule: ScheduleStatus) -> Iterator[tuple[str, object]]:
    yield "schedule", schedule.name
    yield "state", state_of(schedule)
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
    yield "expires", f"after {format_duration(schedule.expires)}" if schedule.expires is not None else None
    yield "owner", schedule.owner or "none (not declared in code)"
    yield "changed", output.moment(schedule.changed_at)
    yield "by", schedule.changed_by
    if schedule.paused:
        yield "paused", f"{output.moment(schedule.paused_at)}" + (f" by {schedule.paused_by}" if schedule.paused_by else "")
        yield "reason", schedule.pause_reason
    yield "retired", output.moment(schedule.retired_at)


def _tick(tick: Tick, schedule: ScheduleStatus) -> tuple[object, ...]:
    planned = _clock(tick.planned_at, schedule)
    if tick.until is not None and tick.times > 1:
        planned += f" to {_clock(tick.until, schedule)}, {tick.times} times"
    outcome = tick.outcome + (" late" if tick.is_late and tick.job_id else "") + (f" by {tick.by}" if tick.by else "")
    return planned, outcome, output.ago(tick.recorded_at, schedule.asked_at), tick.job_id


@click.command("next")
@with_context
@click.argument("name")
@click.option(
    "--count", "-n", type=click.IntRange(1, 1000), default=NEXT_TIMES, show_default=True, help="How many times to print."
)
async def next_(context: CommandContext, name: str, count: int) -> None:
    """Print the next times of a schedule, in its own time zone."""
    schedule = await find_schedule(context, name)
    if context.as_json:
        upcoming = schedule.upcoming(count) if schedule.active else []
        output.print_json({"schedule": name, "words": schedule.words, "state": state_of(schedule), "upcoming": upcoming})
        return
    click.echo(output.safe(f"{name} runs {schedule.words}"))
    if not schedule.active:
        output.note(f"the schedule is {state_of(schedule)}, so no time is planned")
        return
    for line in upcoming_lines(schedule, count):
        click.echo(line)


def upcoming_lines(schedule: ScheduleStatus, count: int) -> Iterator[str]:
    for planned in schedule.upcoming(count):
        yield f"{planned:%a %Y-%m-%d %H:%M:%S %Z}  ({output.ago(planned, schedule.asked_at)})"


def _clock(moment: datetime, schedule: ScheduleStatus) -> str:
    zone = schedule.upcoming(1)[0].tzinfo
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M:%S %Z}"


async def find_schedule(context: CommandContext, name: str) -> ScheduleStatus:
    schedule = await context.app.schedules.find(name)
    if schedule is None:
        raise ScheduleNotFound(name)
    return schedule
