"""`tenure jobs cancel`, `retry`, `replay` and `delete`."""

from __future__ import annotations

from typing import Any, Unpack
from uuid import UUID

import click

from tenure.cli import codes, options, output, types
from tenure.cli.asking import Asker, asks
from tenure.cli.filters import choose, filters
from tenure.client.filters import FilterWords
from tenure.client.unchanged import UNCHANGED
from tenure.model.errors import NotPossible
from tenure.model.states import LIVE, State

MOST_COUNTED = 10_000
"""So many jobs are counted before somebody confirms, no more."""

every = click.option("--all", "every", is_flag=True, help="All that fit the filters; asks before it does it.")
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
ids = click.argument("ids", metavar="[ID]...", nargs=-1)


@click.command()
@asks
@ids
@every
@filters()
@click.option("--reason", help="Why, for the record.")
@options.by
@yes
async def cancel(
    ask: Asker, *, ids: tuple[str, ...], every: bool, reason: str | None, by: str, yes: bool, **given: Unpack[FilterWords]
) -> int:
    """End jobs that are not over, whatever they wait for; runs under way are aborted."""
    choose(ids, every, dict(given))
    if ids:
        wanted = await ask.find_all(ids)
        done = await ask.client.cancel(*[job.id for job in wanted], reason=reason, by=by)
        return _tell(ask, "canceled", done, len({job.id for job in wanted}), "over already")
    states = frozenset(given.get("state") or LIVE) & LIVE
    if not states:
        raise click.UsageError("what is completed, failed or canceled is over and cannot be canceled")
    given["state"] = sorted(states)
    await _confirm(ask, "cancel", given, yes)
    return _tell(ask, "canceled", await ask.client.cancel_all(reason=reason, by=by, **given))


@click.command()
@asks
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@options.by
async def retry(ask: Asker, ids: tuple[str, ...], by: str) -> int:
    """Run jobs as soon as they can be. Of a finished job a new one is made; the old one stays as it is."""
    done: list[dict[str, UUID]] = []
    refused = 0
    for job in await ask.find_all(ids):
        try:
            done.append({"id": job.id, "runs_as": await ask.client.retry(job.id, by=by)})
        except NotPossible as error:
            refused += 1
            output.say(f"tenure: {error}")
    if ask.as_json:
        output.emit({"jobs": done})
    else:
        for one in done:
            same = one["id"] == one["runs_as"]
            click.echo(f"{one['id']} will run now" if same else f"{one['id']} will run again as {one['runs_as']}")
    return codes.FAILED if refused else codes.FINE


@click.command()
@asks
@ids
@every
@filters(without=("state", "priority", "input"))
@click.option("--input", "new_input", type=types.JSON, default=UNCHANGED, help="Other input, for all of them; `-` reads stdin.")
@click.option("--priority", "new_priority", type=types.PRIORITY, help="Another priority.")
@options.by
@yes
async def replay(
    ask: Asker,
    *,
    ids: tuple[str, ...],
    every: bool,
    new_input: Any,
    new_priority: int | None,
    by: str,
    yes: bool,
    **given: Unpack[FilterWords],
) -> int:
    """Run dead letters again, with all their attempts. With --app, other input is checked against the job's definition."""
    choose(ids, every, dict(given))
    if ids:
        wanted = await ask.find_all(ids)
        done = await ask.client.replay(*[job.id for job in wanted], input=new_input, priority=new_priority, by=by)
        if not done:
            states = " or ".join(sorted({job.state.value for job in wanted}))
            raise click.ClickException(f"that is {states}, no dead letter: `tenure jobs retry` runs other jobs again")
        return _tell(ask, "replayed", done, len({job.id for job in wanted}), "in another state")
    await _confirm(ask, "replay", {**given, "state": [State.DEAD_LETTER]}, yes)
    done = await ask.client.replay_all(new_input=new_input, new_priority=new_priority, by=by, **given)
    return _tell(ask, "replayed", done)


@click.command()
@asks
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--force", is_flag=True, help="Running ones too.")
async def delete(ask: Asker, ids: tuple[str, ...], force: bool) -> int:
    """Remove jobs, live or finished, and all that is kept of them. There is no way back."""
    wanted = await ask.find_all(ids)
    try:
        done = await ask.client.delete(*[job.id for job in wanted], force=force)
    except NotPossible as error:
        raise click.ClickException(str(error).replace("force=True", "--force")) from None
    return _tell(ask, "deleted", done, len({job.id for job in wanted}), "gone already")


async def _confirm(ask: Asker, verb: str, given: FilterWords, yes: bool) -> None:
    if yes:
        return
    count = 0
    async for _ in ask.client.iterate(**given):
        count += 1
        if count >= MOST_COUNTED:
            break
    if not count:
        return
    told = f"{verb} {MOST_COUNTED} jobs or more?" if count >= MOST_COUNTED else f"{verb} {output.counted(count, 'job')}?"
    try:
        agreed = click.confirm(told, err=True)
    except click.Abort:
        click.echo(err=True)
        raise click.UsageError("nobody answers, so nothing was done: give --yes to do it unasked") from None
    if not agreed:
        raise click.ClickException("nothing was done")


def _tell(ask: Asker, what: str, done: int, asked: int | None = None, otherwise: str = "") -> int:
    if ask.as_json:
        output.emit({what: done})
        return codes.FINE
    rest = 0 if asked is None else asked - done
    left = f"; {rest} {'was' if rest == 1 else 'were'} {otherwise}" if rest else ""
    click.echo(f"{what} {output.counted(done, 'job')}{left}")
    return codes.FINE
