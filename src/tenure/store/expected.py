"""Which indexes a schema should have, read from the migrations that were applied to it."""

from __future__ import annotations

import re
from collections.abc import Collection

from tenure.store.migration_files import migrations, migrations_table_sql
from tenure.store.statements import DEFAULT_SCHEMA

_BODIES = re.compile(r"\$\$.*?\$\$", re.DOTALL)
_COMMENTS = re.compile(r"--.*$", re.MULTILINE)
_TABLE = re.compile(r"create table (?:if not exists )?tenure\.(\w+) \((.*)\)", re.DOTALL)
_PRIMARY = re.compile(r"(?:constraint (\w+) )?primary key")
_UNIQUE = re.compile(r"constraint (\w+) unique")
_ADDED = re.compile(r"add constraint (\w+) (?:primary key|unique)")
_DROPPED = re.compile(r"drop constraint (?:if exists )?(\w+)")
_ALTERED = re.compile(r"alter table (?:only )?tenure\.(\w+)")
_INDEX = re.compile(r"create (?:unique )?index (?:concurrently )?(?:if not exists )?(\w+) on (?:only )?tenure\.(\w+)")
_GONE = re.compile(r"drop index (?:concurrently )?(?:if exists )?tenure\.(\w+)")
_GONE_TABLE = re.compile(r"drop table (?:if exists )?tenure\.(\w+)")
_RENAMED = re.compile(r"alter index (?:if exists )?tenure\.(\w+) rename to (\w+)")


def expected_indexes(applied: Collection[tuple[int, str]]) -> dict[str, str]:
    """The table of each, by its name."""
    found: dict[str, str] = {}
    scripts = [migrations_table_sql(DEFAULT_SCHEMA), *(m.sql(DEFAULT_SCHEMA) for m in migrations() if m.key in applied)]
    for script in scripts:
        for statement in _BODIES.sub("", _COMMENTS.sub("", script)).split(";"):
            _follow(" ".join(statement.split()), found)
    return found


def _follow(statement: str, found: dict[str, str]) -> None:
    """What one statement makes, renames or removes."""
    if table := _TABLE.match(statement):
        for primary in _PRIMARY.finditer(table[2]):
            found[primary[1] or f"{table[1]}_pkey"] = table[1]
        found.update(dict.fromkeys(_UNIQUE.findall(table[2]), table[1]))
    elif index := _INDEX.match(statement):
        found[index[1]] = index[2]
    elif renamed := _RENAMED.match(statement):
        found[renamed[2]] = found.pop(renamed[1])
    elif gone := _GONE.match(statement):
        found.pop(gone[1], None)
    elif gone_table := _GONE_TABLE.match(statement):
        for name in [name for name, table_name in found.items() if table_name == gone_table[1]]:
            del found[name]
    elif altered := _ALTERED.match(statement):
        found.update(dict.fromkeys(_ADDED.findall(statement), altered[1]))
        for name in _DROPPED.findall(statement):
            found.pop(name, None)
