"""When an app starts, the whole fleet is told what its code declares: schedules, and how long finished jobs are kept."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenure.model.kinds import Registry
from tenure.store import reports, schedules
from tenure.store.link import Link

log = logging.getLogger("tenure")

_TOLD = {
    "created": "schedule %r is new",
    "changed": "schedule %r is changed, as the code has it",
    "back": "schedule %r is back in the code",
    "retired": "schedule %r is not in the code of %s any more, and is retired",
}


@dataclass(frozen=True, kw_only=True)
class Declarations:
    """As plain data: a supervisor learns it from a child, since it runs no code of the app's."""

    owner: str
    schedules: Sequence[Mapping[str, Any]]
    retentions: Mapping[str, float | None]
    """By kind, in seconds; None: as all others."""

    @staticmethod
    def of(kinds: Registry, owner: str) -> Declarations:
        return Declarations(
            owner=owner,
            schedules=[schedule.to_json() for schedule in kinds.schedules.values()],
            retentions={name: None if kind.retention is None else kind.retention.total_seconds() for name, kind in kinds.items()},
        )


async def declare(link: Link, declared: Declarations) -> bool:
    """Whether schedules are other than before. May be repeated, and done by many at once."""
    await link.fetch(reports.declare_retentions(declared.retentions))
    return await _reconcile(link, declared.owner, declared.schedules)


async def _reconcile(link: Link, owner: str, declared: Sequence[Mapping[str, Any]]) -> bool:
    done = await link.fetch(schedules.reconcile(owner, declared))
    for name, what, before in done:
        if what == "taken":
            was = f"that of {before}" if before else "made by hand"
            log.warning("schedule %r was %s and is now that of %s: two apps need names that differ", name, was, owner)
        else:
            log.info(_TOLD[what], name, *([owner] if what == "retired" else []))
    return bool(done)
