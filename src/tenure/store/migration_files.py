"""The migrations as files, and as SQL for those who run their own.

Files come in pairs. `NNNN_pre_name.sql` only adds, so that workers of the version before continue; it runs before the new
workers start. `NNNN_post_name.sql` removes what only the old ones needed; it runs when they are gone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, cast

from tenure.store.statements import in_schema, quoted

Phase = Literal["pre", "post"]
_NAME = re.compile(r"(\d{4})_(pre|post)_(\w+)\.sql")


@dataclass(frozen=True, order=True)
class Migration:
    version: int
    phase: Phase
    name: str

    @property
    def key(self) -> tuple[int, str]:
        return self.version, self.phase

    @property
    def label(self) -> str:
        return f"{self.version:04d}_{self.phase}_{self.name}"

    def sql(self, schema: str) -> str:
        text = files(__package__).joinpath("migrations", f"{self.label}.sql").read_text("utf-8")
        return in_schema(text, schema)

    def entry_sql(self, schema: str) -> str:
        """Its row in the ledger."""
        values = f"{self.version}, '{self.phase}', '{self.name}'"
        return f"insert into {quoted(schema)}.migrations (version, phase, name) values ({values})"  # noqa: S608


@cache
def migrations() -> tuple[Migration, ...]:
    """All of them, in the order they must run: pre before post, version by version."""
    names = [_NAME.fullmatch(entry.name) for entry in files(__package__).joinpath("migrations").iterdir()]
    found = [Migration(int(name[1]), cast("Phase", name[2]), name[3]) for name in names if name]
    return tuple(sorted(found, key=lambda m: (m.version, m.phase != "pre")))


def newest_version() -> int:
    return migrations()[-1].version


def schema_sql(schema: str) -> str:
    return f"create schema if not exists {quoted(schema)};\n"


def ledger_sql(schema: str) -> str:
    """The table that notes which migrations have run."""
    return (
        f"create table if not exists {quoted(schema)}.migrations (\n"
        "    version integer not null, phase text not null, name text not null,\n"
        "    applied_at timestamptz not null default clock_timestamp(), primary key (version, phase));\n"
    )


def migration_sql(schema: str, *, after: int = 0, phase: Phase | None = None, transaction: bool = True) -> str:
    """Everything as one script. Without `transaction` it has no begin and commit, for tools that bring their own."""
    missing = [m for m in migrations() if m.version > after and phase in (None, m.phase)]
    scripts = (f"-- {m.label}\n{m.sql(schema)}\n{m.entry_sql(schema)};\n" for m in missing)
    text = "\n".join([schema_sql(schema) + ledger_sql(schema), *scripts])
    return f"begin;\n{text}commit;\n" if transaction else text
