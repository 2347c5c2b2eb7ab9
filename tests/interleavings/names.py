"""Short names for ids, so that a schedule can be read: J is a job, W a worker, S its supervisor, C a claim, H a leader."""

from __future__ import annotations

from uuid import NAMESPACE_OID, uuid5

_NAMES: dict[str, str] = {}


def uid(name: str) -> str:
    made = str(uuid5(NAMESPACE_OID, name))
    _NAMES[made] = name
    return made


def name_of(given: str | None) -> str | None:
    return None if given is None else _NAMES.get(given, given)
