"""When an app starts, what its code declares is what there is of its schedules."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from tenure.store import schedules
from tenure.store.link import Link

log = logging.getLogger("tenure")

_TOLD = {
    "created": "schedule %r is new",
    "changed": "schedule %r is changed, as the code has it",
    "back": "schedule %r is back in the code",
    "retired": "schedule %r is not in the code of %s any more, and is retired",
}


async def reconcile(link: Link, owner: str, declared: Sequence[Mapping[str, Any]]) -> bool:
    """Whether anything is other than before. May be repeated, and done by many at once."""
    done = await link.fetch(schedules.reconcile(owner, declared))
    for name, what, before in done:
        if what == "taken":
            was = f"that of {before}" if before else "made by hand"
            log.warning("schedule %r was %s and is now that of %s: two apps need names that differ", name, was, owner)
        else:
            log.info(_TOLD[what], name, *([owner] if what == "retired" else []))
    return bool(done)
