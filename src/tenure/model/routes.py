"""Which queue and priority jobs have where they run, as settings decide it: `[routes]`, by patterns of kinds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from tenure.model.errors import ConfigError
from tenure.model.names import check_name
from tenure.model.options import check_option_names
from tenure.model.priorities import to_priority


class Route(NamedTuple):
    pattern: str
    """Of names of kinds, with `*` and `?`: `billing.*`."""
    queue: str | None
    priority: int | None


Routes = tuple[Route, ...]
"""The first one whose pattern fits counts."""


def route_of(routes: Routes, kind: str) -> Route | None:
    return next((route for route in routes if fnmatchcase(kind, route.pattern)), None)


def to_routes(given: Any) -> Routes:
    """From a table, `{"billing.*": "billing", "*.report": {"queue": "reports", "priority": "low"}}`, or from the text of a
    variable: `billing.*=billing,*.report=reports`, or the table as JSON."""
    if isinstance(given, str):
        return to_routes(_table(given)) if given.lstrip().startswith("{") else tuple(_of_text(given))
    if isinstance(given, Mapping):
        return tuple(_route(str(pattern), target) for pattern, target in given.items())
    if isinstance(given, list | tuple) and all(isinstance(route, Route) for route in given):
        return tuple(given)
    raise ConfigError(f'{given!r} is not a table of patterns and queues: write "billing.*" = "billing" in [routes]')


def _table(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is not valid JSON ({error}): correct it, or write PATTERN=QUEUE, separated by commas"
        ) from None


def _of_text(text: str) -> Iterable[Route]:
    for part in filter(None, (part.strip() for part in text.split(","))):
        pattern, equals, queue = part.partition("=")
        if not equals:
            raise ConfigError(f"{part!r} is not a route: write PATTERN=QUEUE, separated by commas")
        yield _route(pattern.strip(), queue.strip())


def _route(pattern: str, target: Any) -> Route:
    if isinstance(target, str):
        return Route(pattern, check_name(target, what=f"the queue of {pattern!r}"), None)
    if not isinstance(target, Mapping) or not target:
        raise ConfigError(f"{pattern!r} leads to {target!r}: give the name of a queue, or {{queue = ..., priority = ...}}")
    check_option_names(target, ["queue", "priority"], what=f"the route {pattern!r}")
    queue, priority = target.get("queue"), target.get("priority")
    return Route(
        pattern,
        None if queue is None else check_name(queue, what=f"the queue of {pattern!r}"),
        None if priority is None else to_priority(priority),
    )
