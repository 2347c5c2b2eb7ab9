"""Reading limits, and changing them at run time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tenure.client.unchanged import Unchanged
from tenure.model.errors import ConfigError
from tenure.model.limits import LimitGiven, RateGiven, Rules, to_rules
from tenure.model.names import check_name, shown
from tenure.model.wakeup import Wakeup
from tenure.store import limits
from tenure.store.limits import LimitRow

if TYPE_CHECKING:
    from tenure.client.session import Session


BOUNDS = frozenset({"concurrency", "concurrency_per_key", "rate", "rate_per_key", "fair"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitStatus:
    """A limit, `kind:send_email` or `queue:mail`, at the time of the query."""

    name: str
    rules: Rules
    """The rules in effect: concurrency, concurrency_per_key, rate and rate_per_key ([starts, seconds]), key, fair."""
    declared: Rules | None
    """What the code declares."""
    override: Rules | None
    """What was set at run time; overrides `declared`."""
    declared_at: datetime | None
    override_at: datetime | None
    override_by: str | None
    running: int
    started: int
    """Starts in the current window of its rate."""
    waiting: bool
    """Whether jobs wait for it."""

    @staticmethod
    def from_row(row: LimitRow) -> LimitStatus:
        return LimitStatus(**{**row._asdict(), "rules": _in_effect(row.rules)})


async def set_limit(session: Session, name: str, words: Rules, by: str | None) -> Rules:
    _check(name)
    now = next((row.rules for row in await session.fetch_all(limits.find()) if row.name == name), {})
    [rules] = await session.fetch(limits.override(name, words | _of_another_key(name, words, now), by))
    session.notify(Wakeup.limits_changed())
    return _in_effect(json.loads(rules))


async def reset_limit(session: Session, name: str, *, declared: bool) -> Rules | None:
    _check(name)
    rows = await session.fetch(limits.reset(name, declared=declared))
    if not rows:
        return None
    session.notify(Wakeup.limits_changed())
    return _in_effect(json.loads(rows[0]))


def said_of(
    name: str, concurrency: LimitGiven | Unchanged | None, rate: RateGiven | Unchanged | None, fair_by: str | Unchanged | None
) -> Rules:
    """The rules to write. A bound that is given replaces all fields of the old one."""
    words: Rules = {}
    if not isinstance(concurrency, Unchanged):
        words |= {"concurrency": None, "concurrency_per_key": None}
    if not isinstance(rate, Unchanged):
        words |= {"rate": None, "rate_per_key": None}
    if not isinstance(fair_by, Unchanged):
        words |= {"fair": None}
    if not words:
        raise ConfigError(f"limit {name!r} is not changed: give concurrency=, rate= or fair_by=")
    rules = to_rules(
        None if isinstance(concurrency, Unchanged) else concurrency,
        None if isinstance(rate, Unchanged) else rate,
        None if isinstance(fair_by, Unchanged) else fair_by,
        what=f"limit {name!r}",
    )
    return words | rules


def _in_effect(rules: Rules) -> Rules:
    """A key without a bound limits nothing, as in the view limit_rules. It is kept in case a bound is set again."""
    return rules if BOUNDS.intersection(rules) else {}


def _of_another_key(name: str, words: Rules, now: Rules) -> Rules:
    """A limit has one key: a new key must not change the bounds that are left unchanged."""
    if "key" not in words or words["key"] == now.get("key"):
        return {}
    if kept := [word for word in ("concurrency_per_key", "rate_per_key", "fair") if word in now and word not in words]:
        raise ConfigError(
            f"limit {name!r} has the key {now['key']!r} for its {' and '.join(kept)}, and a limit has one key: "
            f"give those again as well, or keep the key {now['key']!r}"
        )
    return {"otherwise": None}  # it belongs to the old key


def _check(name: str) -> None:
    of, colon, what = name.partition(":") if isinstance(name, str) else ("", "", "")
    if of not in ("kind", "queue") or not colon or not what or any(c in name for c in "\n\0"):
        raise ConfigError(f"{name!r} is not the name of a limit: give kind:send_email or queue:mail")
    check_name(what, what=f"limit {shown(name)}: the name after the colon")
