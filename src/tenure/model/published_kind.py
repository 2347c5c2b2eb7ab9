"""What a worker publishes about a kind, so that processes that do not import its handler can check and enqueue its jobs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from tenure.model.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from tenure.model.kinds import Kind

Schema = dict[str, Any]
"""JSON Schema."""

LARGEST_SCHEMA = 256 * 1024
"""Bytes. A larger one is left out: every process that dispatches would have to read it."""

LONGEST_DESCRIPTION = 2000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedKind:
    name: str
    queue: str = "default"
    priority: int = 50
    capability: str | None = None
    max_attempts: int = 3
    makes_key: bool = False
    """The code makes an idempotency key from the input. Other processes cannot, so they must be given one."""
    key_for: Literal["live", "forever"] | float = "forever"
    description: str | None = None
    """The docstring of the handler."""
    parameter: str | None = None
    """The handler takes one model, whose own object is the input: the name of that parameter."""
    input: Schema | None = None
    """None: there is none, or it cannot be expressed as JSON Schema. Then the worker alone checks the input."""
    output: Schema | None = None
    workflow: bool | None = None
    """True for a workflow."""
    expires: float | None = None
    """Seconds after the enqueue at which a job that was not started is canceled."""

    @staticmethod
    def of(kind: Kind) -> PublishedKind:
        """Never raises: a kind whose types have no schema is published without one."""
        model = kind.input.model_parameter
        return PublishedKind(
            name=kind.name,
            queue=kind.queue,
            priority=kind.priority,
            capability=kind.capability,
            max_attempts=kind.retry.max_attempts,
            makes_key=kind.key is not None,
            key_for=kind.key_for,
            description=_description(kind.fn),
            parameter=None if model is None else model.name,
            input=_schema(kind.input.schema),
            output=_schema(kind.output.schema),
            workflow=True if kind.is_workflow else None,
            expires=None if kind.expires is None else kind.expires.total_seconds(),
        )

    def to_json(self) -> dict[str, Any]:
        """Fields that are None are left out."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    @staticmethod
    def from_json(given: Mapping[str, Any]) -> PublishedKind:
        """Ignores fields of later versions. Raises `ValueError` if a value is not of its type: SQL can write anything."""
        known = {field.name for field in fields(PublishedKind)}
        return _adapter().validate_python({name: value for name, value in given.items() if name in known})


@cache
def _adapter() -> TypeAdapter[PublishedKind]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - slow to import; only readers need it

    return TypeAdapter(PublishedKind)


def _description(fn: Callable[..., Any]) -> str | None:
    text = inspect.getdoc(fn)
    return None if text is None else text.replace("\0", "")[:LONGEST_DESCRIPTION]


def _schema(make: Callable[[], Schema]) -> Schema | None:
    try:
        made = make()
        text = json.dumps(made)
    except (ConfigError, TypeError, ValueError, RecursionError):
        return None
    except Exception:  # noqa: BLE001 - types of the user may raise anything, and must not stop the worker
        return None
    return made if len(text) <= LARGEST_SCHEMA and "\\u0000" not in text else None
