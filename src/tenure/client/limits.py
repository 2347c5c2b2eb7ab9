"""Reading limits, and changing them at run time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from tenure.client.unchanged import Unchanged
from tenure.model.errors import ConfigError
from tenure.model.limits import ChangedRules, LimitGiven, LimitRules, RateGiven, to_rules
from tenure.model.names import check_name, shown
from tenure.model.options import check_option
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
    rules: LimitRules
    """The rules in effect: concurrency, concurrency_per_key, rate and rate_per_key ([starts, seconds]), key, fair."""
    declared: LimitRules | None
    """What the code declares."""
    override: ChangedRules | None
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


async def set_limit(session: Session, name: str, change: ChangedRules, by: str | None) -> LimitRules:
    _check(name)
    now = next((row.rules for row in await session.fetch_all(limits.find()) if row.name == name), LimitRules())
    [row] = await session.fetch(limits.override(name, change | _of_another_key(name, change, now), by))
    session.notify(Wakeup.limits_changed())
    return _in_effect(row.rules)


async def reset_limit(session: Session, name: str, *, declared: bool) -> LimitRules | None:
    _check(name)
    rows = await session.fetch(limits.reset(name, declared=declared))
    if not rows:
        return None
    session.notify(Wakeup.limits_changed())
    return _in_effect(rows[0].rules)


def change_of(
    name: str, concurrency: LimitGiven | Unchanged | None, rate: RateGiven | Unchanged | None, fair_by: str | Unchanged | None
) -> ChangedRules:
    """The rules to write. A bound that is given replaces all fields of the old one."""
    change: ChangedRules = {}
    if not isinstance(concurrency, Unchanged):
        change |= {"concurrency": None, "concurrency_per_key": None}
    if not isinstance(rate, Unchanged):
        change |= {"rate": None, "rate_per_key": None}
    if not isinstance(fair_by, Unchanged):
        change |= {"fair": None}
    if not change:
        raise ConfigError(f"limit {name!r} is not changed: give concurrency, rate or fair_by")
    rules = to_rules(
        None if isinstance(concurrency, Unchanged) else concurrency,
        None if isinstance(rate, Unchanged) else rate,
        None if isinstance(fair_by, Unchanged) else fair_by,
        what=f"limit {name!r}",
    )
    return {**change, **rules}


def _in_effect(rules: LimitRules) -> LimitRules:
    """A key without a bound limits nothing, as in the view limit_rules. It is kept in case a bound is set again."""
    return rules if BOUNDS.intersection(rules) else {}


def _of_another_key(name: str, change: ChangedRules, now: LimitRules) -> ChangedRules:
    """A limit has one key: a new key must not change the bounds that are left unchanged."""
    if "key" not in change or change["key"] == now.get("key"):
        return {}
    if kept := [rule for rule in ("concurrency_per_key", "rate_per_key", "fair") if rule in now and rule not in change]:
        raise ConfigError(
            f"limit {name!r} has the key {now['key']!r} for its {' and '.join(kept)}, and a limit has one key: "
            f"give those again as well, or keep the key {now['key']!r}"
        )
    return {"otherwise": None}  # it belongs to the old key


def _check(name: str) -> None:
    of, colon, what = name.partition(":") if isinstance(name, str) else ("", "", "")
    if of not in ("kind", "queue") or not colon or not what or any(c in name for c in "\n\0"):
        raise ConfigError(f"{shown(name)} is not the name of a limit: give kind:send_email or queue:mail", option="name")
    check_option("name", partial(check_name, what=f"limit {shown(name)}: the name after the colon"), what)
