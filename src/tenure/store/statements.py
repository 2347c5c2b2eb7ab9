"""Loads the SQL files: one token for the schema, psql-style `:name` parameters."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from tenure.model.errors import ConfigError

DEFAULT_SCHEMA = "tenure"

LONGEST_NAME = 63 - len("_enqueue")
"""Bytes: PostgreSQL cuts names off after 63, and the roles of a schema have its name and more."""

# The files name the default schema; another one replaces exactly this token and the channel keeps pace with it.
_SCHEMA_TOKEN = re.compile(r"\btenure\.(?=[a-z_%])")
# What would end a literal, a format string, a parameter or the quotes around the name itself.
_UNUSABLE = re.compile(r"""['"%\\:$\x00-\x1f\x7f]""")
# No keyword of SQL begins so; all other names are quoted.
_PLAIN = re.compile(r"tenure[a-z0-9_]*")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)


def in_schema(sql: str, schema: str) -> str:
    """The same SQL for another schema."""
    return sql if schema == DEFAULT_SCHEMA else _SCHEMA_TOKEN.sub(f"{quoted(schema)}.", sql)


def quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def checked_schema(name: str) -> str:
    """The name of a schema, or `ConfigError`."""
    if not name or name != name.strip():
        raise ConfigError(f"schema is {name!r}: give a name without spaces around it, such as {DEFAULT_SCHEMA!r}")
    if bad := _UNUSABLE.search(name):
        raise ConfigError(f"schema is {name!r}: {bad[0]!r} cannot be part of the name; use letters, digits, '_' and '-'")
    if name.lower().startswith("pg_") or name == "information_schema":
        raise ConfigError(
            f"schema is {name!r}: PostgreSQL keeps such names for itself; use another one, such as {DEFAULT_SCHEMA!r}"
        )
    if (size := len(name.encode("utf-8", "replace"))) > LONGEST_NAME:
        raise ConfigError(f"schema has a name of {size} bytes, but PostgreSQL leaves room for {LONGEST_NAME}: use a shorter one")
    return name


SKIPPING = " skipping locked rows"
"""Added to a statement's name: rows that another transaction has locked are left out, where the file has a mark for it."""
_MARK = "/* skip locked */"

PASSING_OVER = " passing over refused jobs"
"""Added to a claim's name: what the file marks with `/* passing over: ... */` is part of the statement. Without it the marks
are removed, so the ordinary claim does not pay for them."""
_PASSING_OVER = re.compile(r"/\* passing over: (.*?) \*/")


_INCLUDE = re.compile(r"/\* include: ([a-z_]+) \*/")
"""Replaced by the text of `sql/fragments/<name>.sql`."""


@cache
def statement(name: str, schema: str) -> str:
    """The statement in `sql/<name>.sql`, ready for the driver."""
    file, passing_over, _ = name.partition(PASSING_OVER)
    file, skipping, _ = file.partition(SKIPPING)
    text = _with_fragments(_file(file))
    text = text.replace(_MARK, "for update skip locked" if skipping else "")
    text = _PASSING_OVER.sub(r"\1" if passing_over else "", text)
    text = _COMMENT.sub("", text).replace("%", "%%")
    return _PARAMETER.sub(r"%(\1)s", in_schema(text, schema)).strip()


def _with_fragments(text: str) -> str:
    """A fragment may include others."""
    return _INCLUDE.sub(lambda mark: _with_fragments(_COMMENT.sub("", _file(f"fragments/{mark[1]}")).strip()), text)


def _file(name: str) -> str:
    return files(__package__).joinpath("sql", f"{name}.sql").read_text("utf-8")
