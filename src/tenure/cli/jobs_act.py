"""`tenure jobs cancel`, `retry`, `replay` and `delete`."""

from __future__ import annotations

from typing import Any, Unpack
from uuid import UUID

import click

from tenure.cli import exit_codes, options, output, param_types
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.filters import check_selection, filters
from tenure.client.filters import FilterWords
from tenure.client.unchanged import UNCHANGED
from tenure.model.errors import NotPossible
from tenure.model.states import LIVE, State

MAX_COUNTED = 10_000
"""The most jobs that are counted before the confirmation."""

every = click.option("--all", "every", is_flag=True, help="All jobs that match the filters; asks for confirmation.")
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
ids = click.argument("ids", metavar="[ID]...", nargs=-1)


@click.command()
@with_context
@ids
@every
@filters()
@click.option("--reason", help="The reason, which is recorded.")
@options.by
@yes
async def cancel(
    context: CommandContext,
    *,
    ids: tuple[str, ...],
    every: bool,
    reason: str | None,
    by: str,
    yes: bool,
    **given: Unpack[FilterWords],
) -> int:
    """Cancel unfinished jobs; running ones are aborted."""
    check_selection(ids, every, dict(given))
    if ids:
        wanted = await context.find_all(ids)
        done = await context.client.cancel(*[job.id for job in wanted], reason=reason, by=by)
        return _print_count(context, "canceled", done, len({job.id for job in wanted}), "finished or rolling back already")
    states = frozenset(given.get("state") or LIVE) & LIVE
    if not states:
        raise click.UsageError("completed, failed and canceled jobs cannot be canceled")
    given["state"] = sorted(states)
    await _confirm(context, "cancel", given, yes)
    return _print_count(context, "canceled", await context.client.cancel_all(reason=reason, by=by, **given))


@click.command()
@with_context
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@options.by
async def retry(context: CommandContext, ids: tuple[str, ...], by: str) -> int:
    """Run jobs as soon as possible. For a finished job a new one is created; the old one is unchanged."""
    done: list[dict[str, UUID]] = []
    refused = 0
    for job in await context.find_all(ids):
        try:
            done.append({"id": job.id, "runs_as": await context.client.retry(job.id, by=by)})
        except NotPossible as error:
            refused += 1
            output.note(f"tenure: {error}")
    if context.as_json:
        output.print_json({"jobs": done})
    else:
        for one in done:
            same = one["id"] == one["runs_as"]
            click.echo(f"{one['id']} will run now" if same else f"{one['id']} will run again as {one['runs_as']}")
    return exit_codes.FAILED if refused else exit_codes.SUCCESS


@click.command()
@with_context
@ids
@every
@filters(without=("state", "priority", "input"))
@click.option(
    "--input", "new_input", type=param_types.JSON, default=UNCHANGED, help="New input for all of them; `-` reads stdin."
)
@click.option("--priority", "new_priority", type=param_types.PRIORITY, help="New priority.")
@options.by
@yes
async def replay(
    context: CommandContext,
    *,
    ids: tuple[str, ...],
    every: bool,
    new_input: Any,
    new_priority: int | None,
    by: str,
    yes: bool,
    **given: Unpack[FilterWords],
) -> int:
    """Run dead letters again, with all their attempts. With --app, new input is validated against the job's definition."""
    check_selection(ids, every, dict(given))
    if ids:
        wanted = await context.find_all(ids)
        done = await context.client.replay(*[job.id for job in wanted], input=new_input, priority=new_priority, by=by)
        if not done:
            states = " or ".join(sorted({job.state.value for job in wanted}))
            raise click.ClickException(f"not a dead letter but {states}: use `tenure jobs retry` instead")
        return _print_count(context, "replayed", done, len({job.id for job in wanted}), "in another state")
    await _confirm(context, "replay", {**given, "state": [State.DEAD_LETTER]}, yes)
    done = await context.client.replay_all(new_input=new_input, new_priority=new_priority, by=by, **given)
    return _print_count(context, "replayed", done)


@click.command()
@with_context
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--force", is_flag=True, help="Also delete running jobs.")
async def delete(context: CommandContext, ids: tuple[str, ...], force: bool) -> int:
    """Delete jobs, live or finished, and everything stored with them. This cannot be undone."""
    wanted = await context.find_all(ids)
    try:
        done = await context.client.delete(*[job.id for job in wanted], force=force)
    except NotPossible as error:
        raise click.ClickException(str(error).replace("force=True", "--force")) from None
    return _print_count(context, "deleted", done, len({job.id for job in wanted}), "deleted already")


async def _confirm(context: CommandContext, verb: str, given: FilterWords, yes: bool) -> None:
    if yes:
        return
    count = 0
    async for _ in context.client.iterate(**given):
        count += 1
        if count >= MAX_COUNTED:
            break
    if not count:
        return
    question = f"{verb} {MAX_COUNTED} jobs or more?" if count >= MAX_COUNTED else f"{verb} {output.counted(count, 'job')}?"
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        raise click.UsageError("no terminal to confirm; pass --yes") from None
    if not agreed:
        raise click.ClickException("not confirmed, so nothing was changed")


def _print_count(context: CommandContext, verb: str, done: int, asked: int | None = None, otherwise: str = "") -> int:
    if context.as_json:
        output.print_json({verb: done})
        return exit_codes.SUCCESS
    rest = 0 if asked is None else asked - done
    left = f"; {rest} {'was' if rest == 1 else 'were'} {otherwise}" if rest else ""
    click.echo(f"{verb} {output.counted(done, 'job')}{left}")
    return exit_codes.SUCCESS
