"""When an app starts, the whole fleet is told what its code declares: schedules, and how long finished jobs are kept."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenure.model.kinds import Registry
from tenure.store import history, schedules
from tenure.store.link import Link

log = logging.getLogger("tenure")

_TOLD = {
    "created": "schedule %r is new",
    "changed": "schedule %r is changed, as the code has it",
    "back": "schedule %r is back in the code",
}
RETIRED = "schedule %r is not in the code of %s any more, and is retired"


@dataclass(frozen=True, kw_only=True)
class Declarations:
    """As plain data: a supervisor learns it from a child, since it runs no code of the app's."""

    owner: str
    schedules: Sequence[Mapping[str, Any]]
    retentions: Mapping[str, float | None]
    """By kind, in seconds; None: as all others. All kinds of the app are here."""

    @staticmethod
    def of(kinds: Registry, owner: str) -> Declarations:
        return Declarations(
            owner=owner,
            schedules=[schedule.to_json() for schedule in kinds.schedules.values()],
            retentions={name: None if kind.retention is None else kind.retention.total_seconds() for name, kind in kinds.items()},
        )


async def declare(link: Link, declared: Declarations, supervisor_id: str) -> bool:
    """Whether schedules are other than before. May be repeated, and done by many at once.

    What `supervisor_id` declares is not retired by another process while it lives.
    """
    await link.fetch(history.declare_retentions(declared.retentions))
    kinds, names = declared.retentions.keys(), [str(schedule["name"]) for schedule in declared.schedules]
    await link.fetch(schedules.declare_app(supervisor_id, declared.owner, kinds=kinds, schedules=names))
    query = schedules.reconcile(declared.owner, declared.schedules, supervisor_id=supervisor_id, kinds=kinds)
    done = await link.fetch(query)
    foreign = sorted(row.name for row in done if row.what == "foreign")
    if foreign:
        log.warning(
            "another app is called %s as well, but has other jobs: its schedules (%s) are left as they are; "
            "give each app its own name with the setting `name`: TENURE_NAME, name = ... in tenure.toml, or Tenure(name=...)",
            declared.owner,
            ", ".join(foreign),
        )
    for row in done:
        _tell(row.name, row.what, row.old_owner, declared.owner)
    return len(done) > len(foreign)


def _tell(name: str, what: str, before: str | None, owner: str) -> None:
    if what == "taken":
        was = f"that of {before}" if before else "made by hand"
        log.warning("schedule %r was %s and is now that of %s: two apps need names that differ", name, was, owner)
    elif what == "retired":
        log.info(RETIRED, name, owner)
    elif what in _TOLD:
        log.info(_TOLD[what], name)
