"""Filters that could find out hidden values, one guess after the other: only jobs that also match as they are shown count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tenure.web.job_views import JobView
from tenure.web.problems import invalid_value
from tenure.web.security.redaction import PAIR_VALUES, Redaction, filter_key, is_text_or_number, refuse_hidden

MOST_ITEMS = 10
"""In the lists of a filter by input that has to be checked: each is compared with each item of a job's list."""


@dataclass(frozen=True, slots=True)
class ShownFilter:
    """What a job has to match as it is shown."""

    key: str | None
    contained: dict[str, Any] | None

    @staticmethod
    def of(redaction: Redaction, key: str | None, contained: dict[str, Any] | None, where: str) -> ShownFilter:
        """Raises for a filter by input, given at `where`, that asks for hidden values by their names, or that costs too much."""
        refuse_hidden(redaction, contained, where)
        if not _may_match_hidden(contained):
            return ShownFilter(key, None)
        if _list_items(contained) > MOST_ITEMS:
            raise invalid_value(where, f"has more than {MOST_ITEMS} items in its lists: give fewer")
        return ShownFilter(key, contained)

    @property
    def is_needed(self) -> bool:
        """Otherwise every job that matches also matches as it is shown."""
        return self.key is not None or self.contained is not None

    def matches(self, job: JobView) -> bool:
        return self.key in (None, job["key"]) and (self.contained is None or contains(job["input"], self.contained))


def _may_match_hidden(contained: dict[str, Any] | None) -> bool:
    """PostgreSQL's `@>` ignores members that are left out, and the order of lists. So the value of a pair also matches without
    the name that makes it a secret: {"value": "1234"} and ["1234"]. Other values are hidden by names that a filter needs, too."""
    return bool(filter_key(contained)) or any(
        any(name.lower() in PAIR_VALUES for name in part) if isinstance(part, dict) else any(map(is_text_or_number, part))
        for part in _parts(contained)
    )


def _list_items(contained: Any) -> int:
    return sum(len(part) for part in _parts(contained) if isinstance(part, list))


def _parts(value: Any) -> list[dict[str, Any] | list[Any]]:
    """All objects and lists in it."""
    found = [value] if isinstance(value, dict | list) else []
    for part in found:  # grows meanwhile
        found += [inner for inner in (part.values() if isinstance(part, dict) else part) if isinstance(inner, dict | list)]
    return found


def contains(value: Any, part: Any) -> bool:
    """As PostgreSQL's `value @> part`, for a part that is an object."""
    if isinstance(part, dict):
        return isinstance(value, dict) and all(name in value and contains(value[name], inner) for name, inner in part.items())
    if isinstance(part, list):
        return isinstance(value, list) and all(any(contains(item, inner) for item in value) for inner in part)
    return isinstance(value, bool) == isinstance(part, bool) and bool(value == part)
