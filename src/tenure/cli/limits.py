"""`tenure limits list`, `set` and `reset`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from tenure.cli import options, output
from tenure.cli.asking import Asker, asks
from tenure.cli.output import Column
from tenure.cli.types import Word
from tenure.client.limits import LimitStatus
from tenure.client.unchanged import UNCHANGED
from tenure.model.durations import format_duration
from tenure.model.limits import Limit, Rate

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
    """`5`, `5/tenant_id`, or both by a comma; `none`."""
    if text == NONE:
        return []
    return [Limit(_count(count), per or None) for count, _, per in (part.strip().partition("/") for part in text.split(","))]


def _rate(text: str) -> list[Rate]:
    """`100:1m`, `10:1s/tenant_id`, or both by a comma; `none`."""
    if text == NONE:
        return []
    rates = []
    for part in text.split(","):
        bound, _, per = part.strip().partition("/")
        count, colon, every = bound.partition(":")
        if not colon:
            raise ValueError(f"{part!r} is no rate: give starts and a span, such as 100:1m or 10:1s/tenant_id")
        rates.append(Rate(_count(count), every, per or None))
    return rates


def _count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number: give one such as 5, or 1/tenant_id for one of each") from None


LIMIT = Word("limit", _limit)
RATE = Word("rate", _rate)


@click.group()
def limits() -> None:
    """List, set and reset limits: how many jobs run at a time, and how many start in a while."""


@limits.command("list")
@asks
async def list_(ask: Asker) -> None:
    """Every limit: what holds, how many jobs run under it, and whether it was set at run time."""
    found = await ask.client.limits()
    if ask.as_json:
        output.emit({"limits": found})
        return
    if not found:
        output.say("there are no limits: declare one with concurrency=, rate= or fair_by=, or `tenure limits set`")
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
        _told(rules.get("rate")),
        _told(rules.get("rate_per_key")),
        f"{key} (fair)" if key and rules.get("fair") else key,
        "yes" if limit.waiting else "no",
        None if limit.override is None else f"{output.ago(limit.override_at)} by {limit.override_by or 'somebody'}",
    )


def _told(rate: list[Any] | None) -> str | None:
    return None if rate is None else f"{rate[0]}:{format_duration(timedelta(seconds=rate[1]))}".replace(" ", "")


@limits.command("set")
@asks
@click.argument("name")
@click.option("--concurrency", type=LIMIT, help="Jobs at a time: 5, 1/tenant_id (of each key), 20,1/tenant_id (both), none.")
@click.option("--rate", type=RATE, help="Starts in a span: 100:1m, 10:1s/tenant_id (of each key), both by a comma, none.")
@click.option("--fair-by", help="A key whose jobs take turns: tenant_id; or none.")
@options.by
async def set_(ask: Asker, /, name: str, by: str, **given: Any) -> None:
    """Changes a limit, kind:NAME or queue:NAME, for the whole fleet, until it is reset. What is left out stays as it is."""
    said = {what: UNCHANGED if value is None else None if value == NONE else value for what, value in given.items()}
    rules = await ask.client.set_limit(name, by=by, **said)
    if ask.as_json:
        output.emit({"limit": name, "rules": rules, "by": by})
    else:
        click.echo(f"{name} is set: {_words(rules)}; `tenure limits reset {name}` takes it back")


@limits.command()
@asks
@click.argument("name")
@click.option("--declared", is_flag=True, help="What the code declared goes as well: for a limit that it has no more.")
async def reset(ask: Asker, name: str, declared: bool) -> None:
    """Takes back what was set at run time: what the code declares counts again."""
    rules = await ask.client.reset_limit(name, declared=declared)
    if ask.as_json:
        output.emit({"limit": name, "reset": rules is not None, "rules": rules})
    elif rules is None:
        click.echo(f"nothing was set for {name}")
    else:
        click.echo(f"{name} is reset: {_words(rules)}")


def _words(rules: dict[str, Any]) -> str:
    """What holds, in a line."""
    key = rules.get("key")
    parts = [
        f"{rules['concurrency']} at a time" if "concurrency" in rules else "",
        f"{rules['concurrency_per_key']} at a time of each {key}" if "concurrency_per_key" in rules else "",
        f"{_told(rules['rate'])} starts" if "rate" in rules else "",
        f"{_told(rules['rate_per_key'])} starts of each {key}" if "rate_per_key" in rules else "",
        f"turns by {key}" if rules.get("fair") else "",
    ]
    return ", ".join(filter(None, parts)) or "nothing is limited"
