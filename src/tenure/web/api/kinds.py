"""The kinds of jobs, with the JSON Schemas of their input and output, for forms and type generators."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from tenure.model.published_kind import PublishedKind
from tenure.web.api_routes import ApiCall
from tenure.web.kind_directory import RECHECK
from tenure.web.problems import Problem


class KindView(TypedDict):
    name: str
    description: str | None
    queue: str
    priority: int
    capability: str | None
    max_attempts: int
    makes_key: bool
    """The code makes an idempotency key from the input."""
    input: dict[str, Any] | None
    """JSON Schema of `args`. None: only the worker checks it."""
    output: dict[str, Any] | None
    parameter: str | None
    """The handler takes one model: `args` is the model's own object, or `{parameter: {...}}`."""
    app: str | None
    declared_at: str | None
    workflow: bool
    """It records its steps."""
    workers: int
    """How many living workers run it."""


class KindList(TypedDict):
    kinds: list[KindView]


async def list_kinds(call: ApiCall) -> KindList:
    """List the kinds that this process defines and those that workers have published."""
    return {"kinds": [kind for kind in await _all(call) if call.principal.sees(kind=kind["name"], queue=kind["queue"])]}


async def get_kind(call: ApiCall) -> KindView:
    """Show a kind, with the JSON Schema of its input."""
    name = call.path["kind"]
    for kind in (await list_kinds(call))["kinds"]:
        if kind["name"] == name:
            return kind
    raise Problem(404, "unknown-kind", f"no worker has published a kind {name[:200]!r}: GET /_api/kinds lists them")


async def _all(call: ApiCall) -> list[KindView]:
    found: dict[str, KindView] = {}
    for known in await call.services.stats.kept("kinds", (), call.services.kinds.find_all, RECHECK):
        found[known.kind.name] = _view(known.kind, known.app, known.declared_at.isoformat(), known.workers)
    for name, own in call.services.runtime.kinds.items():
        if name not in found:
            found[name] = _view(PublishedKind.of(own), None, None, 0)
    return [found[name] for name in sorted(found)]


def _view(kind: PublishedKind, app: str | None, declared_at: str | None, workers: int) -> KindView:
    return {
        "name": kind.name,
        "description": kind.description,
        "queue": kind.queue,
        "priority": kind.priority,
        "capability": kind.capability,
        "max_attempts": kind.max_attempts,
        "makes_key": kind.makes_key,
        "input": kind.input,
        "output": kind.output,
        "parameter": kind.parameter,
        "app": app,
        "declared_at": declared_at,
        "workflow": bool(kind.workflow),
        "workers": workers,
    }
