"""`tenure schedules create`, `change`, `pause`, `resume`, `run` and `delete`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from tenure.cli import options, output, types
from tenure.cli.asking import Asker, asks
from tenure.cli.schedule_looks import spoken
from tenure.client.schedule_status import ScheduleStatus

Command = TypeVar("Command", bound=Callable[..., Any])


def definition(command: Command) -> Command:
    """What `create` and `change` have in common."""
    for option in (
        click.option("--jitter", type=types.DURATION, help="Spread the starts over so long: 30s, 5m."),
        click.option("--catch-up-limit", type=click.IntRange(1, 1000), help="With --catch-up all: of the newest so many (100)."),
        click.option("--catch-up", type=click.Choice(["none", "one", "all"]), help="What becomes of missed times (one)."),
        click.option("--overlap", type=click.Choice(["skip", "queue", "allow"]), help="While an earlier job is live (skip)."),
        click.option("--priority", type=types.PRIORITY, help="0 to 100, or a name such as high."),
        click.option("--queue", "-q", help="Another queue than the job's own."),
        click.option("--input", type=types.JSON, help="The job's input as JSON; `-` reads stdin."),
        click.option("--timezone", help="An IANA name such as Europe/Berlin (UTC)."),
        click.option("--every", type=types.DURATION, help="At intervals: 10s, 5m, 1h."),
        click.option("--cron", help="Five fields such as '0 9 * * 1-5', or @hourly, @daily, @weekly, @monthly, @yearly."),
    ):
        command = option(command)
    return command


@click.command()
@asks
@click.argument("name")
@click.argument("kind")
@definition
@click.option("--paused", is_flag=True, help="Do not begin yet.")
@options.by
async def create(ask: Asker, /, name: str, kind: str, paused: bool, by: str, **given: Any) -> None:
    """Make a schedule of jobs of this KIND. With --app its input and defaults are those of the job's definition."""
    wanted = {option: value for option, value in given.items() if value is not None}
    _tell(ask, await ask.app.schedules.create(name, kind, paused=paused, by=by, **wanted), "is made")


@click.command()
@asks
@click.argument("name")
@definition
@options.by
async def change(ask: Asker, /, name: str, by: str, **given: Any) -> None:
    """Change a schedule that was made by hand. What is not given stays as it is."""
    wanted = {option: value for option, value in given.items() if value is not None}
    if not wanted:
        raise click.UsageError("nothing is to be changed: give --cron, --every, --input or another option")
    _tell(ask, await ask.app.schedules.change(name, by=by, **wanted), "is changed")


def _tell(ask: Asker, schedule: ScheduleStatus, what: str) -> None:
    if ask.as_json:
        output.emit(schedule.to_json())
        return
    click.echo(output.safe(f"schedule {schedule.name!r} {what}: {schedule.kind} {schedule.words}"))
    for line in spoken(schedule, 1) if schedule.active else ():
        click.echo(f"next  {line}")


@click.command()
@asks
@click.argument("name")
@click.option("--reason", help="Why, for the record.")
@options.by
async def pause(ask: Asker, name: str, reason: str | None, by: str) -> None:
    """From now on no time of it is planned; its jobs go on."""
    await ask.app.schedules.pause(name, reason=reason, by=by)
    if ask.as_json:
        output.emit({"schedule": name, "paused": True, "by": by, "reason": reason})
    else:
        click.echo(f"schedule {name!r} is paused; `tenure schedules resume {name}` lets it go on")


@click.command()
@asks
@click.argument("name")
async def resume(ask: Asker, name: str) -> None:
    """The schedule goes on from here; times that passed meanwhile are none of its own."""
    resumed = await ask.app.schedules.resume(name)
    if ask.as_json:
        output.emit({"schedule": name, "paused": False, "resumed": resumed})
    else:
        click.echo(f"schedule {name!r} goes on" if resumed else f"schedule {name!r} was not paused")


@click.command()
@asks
@click.argument("name")
@click.option("--input", type=types.JSON, help="Other input, for this run only.")
@options.by
async def run(ask: Asker, /, name: str, by: str, **given: Any) -> None:
    """Hand in a job of it now, whatever is planned, even if it is paused or an earlier one is live. Prints the job's id."""
    wanted = {option: value for option, value in given.items() if value is not None}
    handle = await ask.app.schedules.run_now(name, by=by, **wanted)
    if ask.as_json:
        output.emit({"schedule": name, "id": handle.id, "kind": handle.kind})
    else:
        click.echo(handle.id)


@click.command()
@asks
@click.argument("name")
async def delete(ask: Asker, name: str) -> None:
    """Remove a schedule that no code declares any more, or that was made by hand. Its jobs go on."""
    await ask.app.schedules.delete(name)
    if ask.as_json:
        output.emit({"schedule": name, "deleted": True})
    else:
        click.echo(f"schedule {name!r} is deleted")
