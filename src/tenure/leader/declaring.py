"""When an app starts, what its code declares is stored for all processes: its kinds, schedules, and how long jobs are kept."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenure.store import history, kinds, schedules
from tenure.store.link import Link

if TYPE_CHECKING:
    from tenure.model.kinds import Registry

log = logging.getLogger("tenure")

RETIRED = "schedule retired, because the code no longer declares it"

_CHANGES = {
    "created": "schedule created",
    "changed": "schedule changed in the code",
    "restored": "schedule restored, because the code declares it again",
    "retired": RETIRED,
}


@dataclass(frozen=True, kw_only=True)
class Declarations:
    """Plain data: a supervisor receives it from a child, because it runs no code of the app."""

    owner: str
    schedules: Sequence[Mapping[str, Any]]
    retentions: Mapping[str, float | None]
    """By kind, in seconds; None: the default. Contains all kinds of the app."""
    kinds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By name, each as `PublishedKind.to_json()`."""

    @staticmethod
    def of(kinds: Registry, owner: str) -> Declarations:
        from tenure.model.published_kind import PublishedKind  # noqa: PLC0415 - not for a supervisor, which only receives them

        return Declarations(
            owner=owner,
            schedules=[schedule.to_json() for schedule in kinds.schedules.values()],
            retentions={name: None if kind.retention is None else kind.retention.total_seconds() for name, kind in kinds.items()},
            kinds={name: PublishedKind.of(kind).to_json() for name, kind in kinds.items()},
        )


async def declare(link: Link, declared: Declarations, supervisor_id: str) -> bool:
    """Whether schedules have changed. Idempotent, and safe to run concurrently.

    While `supervisor_id` lives, no other process retires what it declares.
    """
    await link.fetch(history.declare_retentions(declared.retentions))
    await link.fetch(kinds.declare(declared.owner, declared.kinds))
    own, names = declared.retentions.keys(), [str(schedule["name"]) for schedule in declared.schedules]
    await link.fetch(schedules.declare_app(supervisor_id, declared.owner, kinds=own, schedules=names))
    query = schedules.reconcile(declared.owner, declared.schedules, supervisor_id=supervisor_id, kinds=own)
    done = await link.fetch(query)
    foreign = sorted(row.name for row in done if row.what == "foreign")
    if foreign:
        log.warning(
            "another app with other jobs has the same name; its schedules are left unchanged: give each app its own name "
            "with the setting `name` (TENURE_NAME, name = ... in tenure.toml, or Tenure(name=...))",
            extra={"app": declared.owner, "schedules": foreign},
        )
    for row in done:
        _log_change(row.name, row.what, row.old_owner, declared.owner)
    return len(done) > len(foreign)


def _log_change(name: str, what: str, before: str | None, owner: str) -> None:
    fields = {"schedule": name, "app": owner}
    if what == "taken" and before:
        fields["app_before"] = before
        log.warning("schedule taken over from another app; give each app its own schedule names", extra=fields)
    elif what == "taken":
        log.warning("schedule replaced one that was created by hand; give one of them another name", extra=fields)
    elif what in _CHANGES:
        log.info(_CHANGES[what], extra=fields)
