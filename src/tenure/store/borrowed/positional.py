"""Our statements with `$1` for parameters, as asyncpg wants them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from tenure.store.query import Query
from tenure.store.statements import statement

_PLACEHOLDER = re.compile(r"%%|%\((?P<name>\w+)\)s(?:::(?P<type>\w+(?:\[\])?))?")

# asyncpg takes the values of these as psycopg does. All others come as text and are read by the server: asyncpg would
# want lists for arrays, and an encoder that the caller has set for jsonb would encode our JSON once more.
_AS_THEY_ARE = {"text", "boolean", "smallint", "integer", "bigint", "float8", "timestamptz"}


@dataclass(frozen=True, slots=True)
class Positional:
    sql: str
    names: tuple[str, ...]

    def values(self, query: Query[object]) -> tuple[Any, ...]:
        return tuple(query.values[name] for name in self.names)


@cache
def positional(name: str, schema: str) -> Positional:
    names: list[str] = []

    def numbered(found: re.Match[str]) -> str:
        if found["name"] is None:
            return "%"
        if found["name"] not in names:
            names.append(found["name"])
        return f"${names.index(found['name']) + 1}{_cast(found['type'])}"

    return Positional(_PLACEHOLDER.sub(numbered, statement(name, schema)), tuple(names))


def _cast(wanted: str | None) -> str:
    if wanted is None:
        return ""
    return f"::{wanted}" if wanted in _AS_THEY_ARE else f"::text::{wanted}"
