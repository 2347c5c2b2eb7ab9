"""`tenure schedules create`, `change`, `pause`, `resume`, `run` and `delete`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from tenure.cli import options, output, param_types
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.schedules_show import upcoming_lines
from tenure.client.schedule_status import ScheduleStatus

Command = TypeVar("Command", bound=Callable[..., Any])


def definition(command: Command) -> Command:
    """The options that `create` and `change` share."""
    for option in (
        click.option("--expires", type=param_types.DURATION, help="Cancel jobs that were not started in this time: 10m, 1h."),
        click.option("--jitter", type=param_types.DURATION, help="Spread the starts over this time: 30s, 5m."),
        click.option(
            "--catch-up-limit", type=click.IntRange(1, 1000), help="With --catch-up all: at most this many, the newest (100)."
        ),
        click.option("--catch-up", type=click.Choice(["none", "one", "all"]), help="How many missed times to run (one)."),
        click.option(
            "--overlap", type=click.Choice(["skip", "queue", "allow"]), help="What to do while an earlier job is live (skip)."
        ),
        click.option("--priority", type=param_types.PRIORITY, help="0 to 100, or a name such as high."),
        click.option("--queue", "-q", help="Queue; default: the job's own."),
        click.option("--input", type=param_types.JSON, help="The job's input as JSON; `-` reads stdin."),
        click.option("--timezone", help="IANA time zone such as Europe/Berlin (UTC)."),
        click.option("--every", type=param_types.DURATION, help="The interval: 10s, 5m, 1h."),
        click.option("--cron", help="Five fields such as '0 9 * * 1-5', or @hourly, @daily, @weekly, @monthly, @yearly."),
    ):
        command = option(command)
    return command


@click.command()
@with_context
@click.argument("name")
@click.argument("kind")
@definition
@click.option("--paused", is_flag=True, help="Create it paused.")
@options.by
async def create(context: CommandContext, /, name: str, kind: str, paused: bool, by: str, **given: Any) -> None:
    """Create a schedule for jobs of this KIND. With --app the input is validated, and omitted options are the job's own."""
    wanted = {option: value for option, value in given.items() if value is not None}
    _print_schedule(context, await context.app.schedules.create(name, kind, paused=paused, by=by, **wanted), "created")


@click.command()
@with_context
@click.argument("name")
@definition
@options.by
async def change(context: CommandContext, /, name: str, by: str, **given: Any) -> None:
    """Change a schedule that no code declares. Omitted options stay unchanged."""
    wanted = {option: value for option, value in given.items() if value is not None}
    if not wanted:
        raise click.UsageError("nothing to change: give --cron, --every, --input or another option")
    _print_schedule(context, await context.app.schedules.change(name, by=by, **wanted), "changed")


def _print_schedule(context: CommandContext, schedule: ScheduleStatus, what: str) -> None:
    if context.as_json:
        output.print_json(schedule.to_json())
        return
    click.echo(output.safe(f"schedule {schedule.name!r} {what}: {schedule.kind} {schedule.words}"))
    for line in upcoming_lines(schedule, 1) if schedule.active else ():
        click.echo(f"next  {line}")


@click.command()
@with_context
@click.argument("name")
@click.option("--reason", help="The reason, which is recorded.")
@options.by
async def pause(context: CommandContext, name: str, reason: str | None, by: str) -> None:
    """Stop planning new times; jobs that exist continue."""
    await context.app.schedules.pause(name, reason=reason, by=by)
    if context.as_json:
        output.print_json({"schedule": name, "paused": True, "by": by, "reason": reason})
    else:
        click.echo(f"schedule {name!r} is paused; `tenure schedules resume {name}` resumes it")


@click.command()
@with_context
@click.argument("name")
async def resume(context: CommandContext, name: str) -> None:
    """Plan new times from now on. Times that passed while it was paused are not run."""
    resumed = await context.app.schedules.resume(name)
    if context.as_json:
        output.print_json({"schedule": name, "paused": False, "resumed": resumed})
    else:
        click.echo(f"schedule {name!r} is resumed" if resumed else f"schedule {name!r} was not paused")


@click.command()
@with_context
@click.argument("name")
@click.option("--input", type=param_types.JSON, help="Input for this run only.")
@options.by
async def run(context: CommandContext, /, name: str, by: str, **given: Any) -> None:
    """Enqueue a job of the schedule now, even if it is paused or an earlier job is live. Prints the job's id."""
    wanted = {option: value for option, value in given.items() if value is not None}
    handle = await context.app.schedules.run_now(name, by=by, **wanted)
    if context.as_json:
        output.print_json({"schedule": name, "id": handle.id, "kind": handle.kind})
    else:
        click.echo(handle.id)


@click.command()
@with_context
@click.argument("name")
async def delete(context: CommandContext, name: str) -> None:
    """Delete a schedule that no code declares. Its jobs continue."""
    await context.app.schedules.delete(name)
    if context.as_json:
        output.print_json({"schedule": name, "deleted": True})
    else:
        click.echo(f"schedule {name!r} deleted")
