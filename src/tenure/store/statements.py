"""Loads the SQL files: one token for the schema, psql-style `:name` parameters."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

DEFAULT_SCHEMA = "tenure"

# The files name the default schema; another one replaces exactly this token and the channel keeps pace with it.
_SCHEMA_TOKEN = re.compile(r"\btenure\.(?=[a-z_%])")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)


def in_schema(sql: str, schema: str) -> str:
    """The same SQL for another schema."""
    return sql if schema == DEFAULT_SCHEMA else _SCHEMA_TOKEN.sub(f"{quoted(schema)}.", sql)


def quoted(name: str) -> str:
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'


@cache
def statement(name: str, schema: str) -> str:
    """The statement in `sql/<name>.sql`, ready for the driver."""
    text = files(__package__).joinpath("sql", f"{name}.sql").read_text("utf-8")
    text = _COMMENT.sub("", text).replace("%", "%%")
    return _PARAMETER.sub(r"%(\1)s", in_schema(text, schema)).strip()
