"""What the name of a kind tells the checker."""

from __future__ import annotations

import re
from functools import cache

_LIMITED = re.compile(r"limited_(\d+)")
CHANGING = "changing"
"""Kinds whose name begins so are under limits that are set, changed and removed while the campaign runs."""

REFUSED = "refused"
"""Kinds whose name begins so have rows that PostgreSQL refuses to change, now and then."""


@cache
def limit_of(kind: str) -> int | None:
    """How many of a kind may be held at a time, for as long as the campaign runs."""
    found = _LIMITED.fullmatch(kind)
    return int(found[1]) if found else None


@cache
def in_line(kind: str) -> bool:
    """Whether its jobs are granted in their order. What is limited waits for room, and what is refused is skipped."""
    return limit_of(kind) is None and not kind.startswith((CHANGING, REFUSED))
