"""The headers of a job: texts that hooks and middleware add to it, such as the context of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tenure.model.errors import InvalidPayload
from tenure.model.payloads import plain_json


def checked_headers(given: Mapping[Any, Any], *, what: str) -> Mapping[str, str]:
    """A read-only copy of headers that PostgreSQL can store."""
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidPayload(f"{what} must be texts, but {name!r:.100} is {value!r:.100}")
    plain_json(dict(given), what=what)
    return MappingProxyType(dict(given))
