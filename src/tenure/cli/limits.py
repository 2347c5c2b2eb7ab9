"""`tenure limits list`, `set` and `reset`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from tenure.cli import options, output
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.output import Column
from tenure.cli.param_types import ParsedParam
from tenure.client.limits import LimitStatus
from tenure.client.unchanged import UNCHANGED
from tenure.model.durations import format_duration
from tenure.model.limits import Limit, LimitRules, Rate

LIST = (
    Column("LIMIT", flexible=True),
    Column("RUNNING", right=True),
    Column("MOST", right=True),
    Column("PER KEY", right=True),
    Column("RATE", right=True),
    Column("RATE PER KEY", right=True),
    Column("KEY"),
    Column("WAITING"),
    Column("SET", flexible=True),
)

NONE = "none"


def _limit(text: str) -> list[Limit]:
    """`5`, `5/tenant_id`, or both separated by a comma; `none`."""
    if text == NONE:
        return []
    return [Limit(_count(count), per or None) for count, _, per in (part.strip().partition("/") for part in text.split(","))]


def _rate(text: str) -> list[Rate]:
    """`100:1m`, `10:1s/tenant_id`, or both separated by a comma; `none`."""
    if text == NONE:
        return []
    rates = []
    for part in text.split(","):
        bound, _, per = part.strip().partition("/")
        count, colon, every = bound.partition(":")
        if not colon:
            raise ValueError(f"{part!r} is not a rate: give starts and a time span, such as 100:1m or 10:1s/tenant_id")
        rates.append(Rate(_count(count), every, per or None))
    return rates


def _count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number: give one such as 5, or 1/tenant_id for one per key") from None


LIMIT = ParsedParam("limit", _limit)
RATE = ParsedParam("rate", _rate)


@click.group()
def limits() -> None:
    """List, set and reset limits on concurrency and rate."""


@limits.command("list")
@with_context
async def list_(context: CommandContext) -> None:
    """List every limit: its rules, how many jobs run under it, and whether it was set at run time."""
    found = await context.client.limits()
    if context.as_json:
        output.print_json({"limits": found})
        return
    if not found:
        output.note("no limits; declare one with concurrency=, rate= or fair_by=, or `tenure limits set`")
        return
    output.show_table(LIST, [_row(limit) for limit in found])


def _row(limit: LimitStatus) -> tuple[object, ...]:
    rules = limit.rules
    key = rules.get("key")
    return (
        limit.name,
        limit.running,
        rules.get("concurrency"),
        rules.get("concurrency_per_key"),
        _rate_text(rules.get("rate")),
        _rate_text(rules.get("rate_per_key")),
        f"{key} (fair)" if key and rules.get("fair") else key,
        "yes" if limit.waiting else "no",
        None if limit.override is None else f"{output.ago(limit.override_at)} by {limit.override_by or 'unknown'}",
    )


def _rate_text(rate: list[float] | None) -> str | None:
    return None if rate is None else f"{rate[0]}:{format_duration(timedelta(seconds=rate[1]))}".replace(" ", "")


@limits.command("set")
@with_context
@click.argument("name")
@click.option("--concurrency", type=LIMIT, help="Jobs at a time: 5, 1/tenant_id (per key), 20,1/tenant_id (both), none.")
@click.option(
    "--rate", type=RATE, help="Starts per time span: 100:1m, 10:1s/tenant_id (per key), both separated by a comma, none."
)
@click.option("--fair-by", help="A key whose values take turns, such as tenant_id; or none.")
@options.by
async def set_(context: CommandContext, /, name: str, by: str, **given: Any) -> None:
    """Change a limit, kind:NAME or queue:NAME, for the whole fleet, until it is reset. Omitted options stay unchanged."""
    rules_given = {what: UNCHANGED if value is None else None if value == NONE else value for what, value in given.items()}
    rules = await context.client.set_limit(name, by=by, **rules_given)
    if context.as_json:
        output.print_json({"limit": name, "rules": rules, "by": by})
    else:
        click.echo(f"{name} is set: {_words(rules)}; `tenure limits reset {name}` undoes this")


@limits.command()
@with_context
@click.argument("name")
@click.option("--declared", is_flag=True, help="Also remove what the code declared: for a limit that it no longer declares.")
async def reset(context: CommandContext, name: str, declared: bool) -> None:
    """Remove what was set at run time: what the code declares applies again."""
    rules = await context.client.reset_limit(name, declared=declared)
    if context.as_json:
        output.print_json({"limit": name, "reset": rules is not None, "rules": rules})
    elif rules is None:
        click.echo(f"nothing was set for {name}")
    else:
        click.echo(f"{name} is reset: {_words(rules)}")


def _words(rules: LimitRules) -> str:
    """The rules in one line."""
    key = rules.get("key")
    parts = [
        f"{rules['concurrency']} at a time" if "concurrency" in rules else "",
        f"{rules['concurrency_per_key']} at a time per {key}" if "concurrency_per_key" in rules else "",
        f"{_rate_text(rules['rate'])} starts" if "rate" in rules else "",
        f"{_rate_text(rules['rate_per_key'])} starts per {key}" if "rate_per_key" in rules else "",
        f"fair by {key}" if rules.get("fair") else "",
    ]
    return ", ".join(filter(None, parts)) or "no limit"
