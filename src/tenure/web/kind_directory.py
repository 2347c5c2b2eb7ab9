"""The kinds that can be dispatched: those that this process defines, and those that workers have published."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from tenure.model.kinds import Registry
from tenure.model.published_kind import PublishedKind, Schema
from tenure.store import kinds
from tenure.store.kinds import KindRow
from tenure.store.query import Fetch
from tenure.web.argument_checks import WITHIN, ArgumentCheck, TooSlow
from tenure.web.problems import FieldProblem, Problem, how_to_fit
from tenure.web.security.principal import Principal

RECHECK = 5.0
"""Seconds for which a published kind is used without asking again."""

MOST_KNOWN = 1000


@dataclass(frozen=True)
class KnownKind:
    """A kind, as workers have published it."""

    kind: PublishedKind
    app: str
    declared_at: datetime
    workers: int
    """How many living workers run it."""

    @cached_property
    def check(self) -> ArgumentCheck | None:
        """Made when it is first needed: lists of kinds do without. None: only the worker can check its input."""
        return _check_by(self.kind.input)

    @cached_property
    def output_check(self) -> ArgumentCheck | None:
        return _check_by(self.kind.output)


class KindDirectory:
    def __init__(self, own: Registry, read: Fetch) -> None:
        self._own = own
        self._read = read
        self._known: dict[str, tuple[float, KnownKind | None]] = {}

    async def published(self, name: str, principal: Principal) -> KnownKind:
        """Raises a problem if no worker has published it, with the nearest names that the principal may see."""
        known = await self.find(name)
        if known is None:
            raise await self._unknown(name, principal)
        return known

    async def find(self, name: str) -> KnownKind | None:
        """None: no worker has published it."""
        kept = self._known.get(name)
        if kept is None or time.monotonic() - kept[0] >= RECHECK:
            rows = await self._read(kinds.find(name))
            known = next(iter(_known(rows)), None)
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            kept = self._known[name] = time.monotonic(), known
        return kept[1]

    async def find_all(self) -> list[KnownKind]:
        return _known(await self._read(kinds.find_all()))

    async def _unknown(self, name: str, principal: Principal) -> Problem:
        found = {name: kind.queue for name, kind in self._own.items()}
        found |= {known.kind.name: known.kind.queue for known in await self.find_all()}
        near = get_close_matches(name, [one for one, queue in found.items() if principal.sees(kind=one, queue=queue)], n=3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "start a worker that defines it"
        return Problem(404, "unknown-kind", f"no worker has published a kind {name[:200]!r}: {hint}")


def _known(rows: Sequence[KindRow]) -> list[KnownKind]:
    """Without those that no worker can have written: they must not hide the others."""
    found: list[KnownKind] = []
    for row in rows:
        with suppress(ValueError, TypeError):
            kind = PublishedKind.from_json({**json.loads(row.definition), "name": row.name})
            found.append(KnownKind(kind, row.app, row.declared_at, row.workers))
    return found


def _check_by(schema: Schema | None) -> ArgumentCheck | None:
    try:
        return None if schema is None else ArgumentCheck(schema)
    except ValueError:
        return None


async def check_args(known: KnownKind, args: Any, where: str) -> None:
    """By the published schema. A handler with a single model takes the model's own object, or `{"parameter": {...}}`.
    `where`: the member of the body that has them."""
    name = known.kind.parameter
    if not isinstance(args, dict) and name is None:
        message = f"the input of kind {known.kind.name!r} must be an object: give the arguments by their names"
        raise Problem(422, "invalid-input", message, [{"path": where, "message": message}])
    if known.check is None:
        return
    problems = await _problems(known, known.check, args, where)
    if problems and isinstance(args, dict) and list(args) == [name]:
        problems = await _problems(known, known.check, args[name], f"{where}.{name}")
    if problems:
        detail = f"the arguments do not fit kind {known.kind.name!r}: {_listed(problems)}: {how_to_fit(known.kind.name)}"
        raise Problem(422, "invalid-input", detail, problems)


async def check_output(known: KnownKind, output: Any) -> None:
    """By the published schema of what the handler returns."""
    problems = [] if known.output_check is None else await _problems(known, known.output_check, output, "output")
    if problems:
        detail = f"the output does not fit kind {known.kind.name!r}: {_listed(problems)}: {how_to_fit(known.kind.name)}"
        raise Problem(422, "invalid-output", detail, problems)


async def _problems(known: KnownKind, check: ArgumentCheck, value: Any, where: str) -> list[FieldProblem]:
    try:
        return await check.problems(value, where)
    except TooSlow:
        message = (
            f"{where} cannot be checked by the schema of kind {known.kind.name!r} within {WITHIN:g} s: give less to one job, "
            "store big data elsewhere and pass a reference, or start the web server with --app so that it imports the handlers"
        )
        raise Problem(422, "unchecked", message, [{"path": where, "message": message}]) from None


def _listed(problems: Sequence[FieldProblem]) -> str:
    return "; ".join(f"{one['path']}: {one['message']}" for one in problems[:3])
