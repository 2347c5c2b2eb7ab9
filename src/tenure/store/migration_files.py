"""The migrations as files, and as SQL for teams that run their own migration tool.

`NNNN_pre_name.sql` only adds, so that workers of the version before continue; it runs before the new workers start.
`NNNN_post_name.sql` removes what only the old workers needed; it runs when they are gone, and is optional. All pre files run
before any post file. The rules for both are in docs/decisions/0023-migrations-add-then-remove.md.

Views and functions have one current definition each, in `views/` and `functions/`. They are created or replaced after the newest
pre file, in its transaction.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal, cast

from tenure.store.statements import in_schema, quoted

Phase = Literal["pre", "post"]
_NAME = re.compile(r"(\d{4})_(pre|post)_(\w+)\.sql")

MIGRATIONS: Traversable = files(__package__).joinpath("migrations")
"""The folder with the files. Tests replace it."""

OUTSIDE = "-- outside a transaction\n"
"""The first line of a file whose statements run one by one, each on its own, as `create index concurrently` needs it."""

_COMMENT = re.compile(r"--.*$", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Migration:
    version: int
    phase: Phase
    name: str

    @property
    def key(self) -> tuple[int, Phase]:
        return self.version, self.phase

    @property
    def label(self) -> str:
        return f"{self.version:04d}_{self.phase}_{self.name}"

    @property
    def outside(self) -> bool:
        """Whether its statements run outside a transaction."""
        return self._text().startswith(OUTSIDE)

    def sql(self, schema: str) -> str:
        return in_schema(self._text(), schema)

    def statements(self, schema: str) -> list[str]:
        """For a file outside a transaction, which contains no function bodies, so that every semicolon ends a statement."""
        return [text.strip() for text in _COMMENT.sub("", self.sql(schema)).split(";") if text.strip()]

    def closing_sql(self, schema: str) -> str:
        """What follows the file in one transaction: views and functions after the newest pre file, then its record."""
        return (definitions_sql(schema) if self == newest_pre() else "") + self._entry_sql(schema)

    def _entry_sql(self, schema: str) -> str:
        values = f"{self.version}, '{self.phase}', '{self.name}'"
        return f"insert into {quoted(schema)}.migrations (version, phase, name) values ({values});\n"  # noqa: S608

    def _text(self) -> str:
        return MIGRATIONS.joinpath(f"{self.label}.sql").read_text("utf-8")


def migrations() -> tuple[Migration, ...]:
    """All of them, in the order in which they run: every pre, then every post, by version."""
    names = [_NAME.fullmatch(entry.name) for entry in MIGRATIONS.iterdir()]
    found = [Migration(int(name[1]), cast("Phase", name[2]), name[3]) for name in names if name]
    return tuple(sorted(found, key=lambda m: (m.phase != "pre", m.version)))


def newest_pre() -> Migration:
    return [migration for migration in migrations() if migration.phase == "pre"][-1]


def newest_version() -> int:
    return newest_pre().version


def schema_sql(schema: str) -> str:
    return f"create schema if not exists {quoted(schema)};\n"


def migrations_table_sql(schema: str) -> str:
    """The table that records which migrations have run."""
    return (
        f"create table if not exists {quoted(schema)}.migrations (\n"
        "    version integer not null, phase text not null, name text not null,\n"
        "    applied_at timestamptz not null default clock_timestamp(), primary key (version, phase));\n"
    )


def definitions_sql(schema: str) -> str:
    """Creates or replaces all views and functions, and makes the first partitions of history.

    Within each folder in the order of the names. Only views, and functions whose bodies are parsed when they are created
    (`return`, `begin atomic`), must come after what they refer to; the bodies of all others are not checked here.
    """
    texts = [file.read_text("utf-8") for folder in ("views", "functions") for file in _sql_files(folder)]
    return "\n".join(
        [
            _BEFORE_FUNCTIONS.format(name=_literal(schema)),
            *(in_schema(text, schema) for text in texts),
            in_schema(_AFTER_FUNCTIONS, schema).replace("{name}", _literal(schema)),
        ]
    )


def _sql_files(folder: str) -> list[Traversable]:
    entries = files(__package__).joinpath(folder).iterdir()
    return sorted((entry for entry in entries if entry.name.endswith(".sql")), key=lambda entry: entry.name)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_BEFORE_FUNCTIONS = """\
set local check_function_bodies = off;
select set_config('tenure_migration.functions', coalesce(string_agg(p.oid::text, ' '), ''), true)
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
 where n.nspname = {name};
"""

_AFTER_FUNCTIONS = """\
set local check_function_bodies = default;

-- If access was restricted before (`tenure sql --roles`), it stays restricted: a new function is open to the roles that may call
-- make_history, those of workers, and not to PUBLIC.
do $$
declare
    grants aclitem[] := (select p.proacl from pg_proc p where p.oid = 'tenure.make_history(integer)'::regprocedure);
    existing text[] := string_to_array(current_setting('tenure_migration.functions', true), ' ');
    made regprocedure;
    grantee text;
begin
    if grants is null then
        return;
    end if;
    for made in
        select p.oid::regprocedure from pg_proc p join pg_namespace n on n.oid = p.pronamespace
         where n.nspname = {name} and p.oid::text <> all (existing)
    loop
        execute format('revoke all on function %s from public', made);
        for grantee in
            select case when a.grantee = 0 then 'public' else a.grantee::regrole::text end
              from aclexplode(grants) as a where a.privilege_type = 'EXECUTE'
        loop
            execute format('grant execute on function %s to %s', made, grantee);
        end loop;
    end loop;
    -- Clients call enqueue_one instead of enqueue for a single plain job, so the same roles may call it.
    for grantee in
        select case when a.grantee = 0 then 'public' else a.grantee::regrole::text end
          from pg_proc p join pg_namespace n on n.oid = p.pronamespace cross join lateral aclexplode(p.proacl) as a
         where n.nspname = {name} and p.proname = 'enqueue' and a.privilege_type = 'EXECUTE'
    loop
        execute format('grant execute on function tenure.enqueue_one(jsonb) to %s', grantee);
    end loop;
end
$$;

-- A new database needs the first partitions of history; later ones are made by the leader.
select tenure.make_history(7) where not exists (select from tenure.history_days());

"""


def migration_sql(schema: str, *, after: int = 0, phase: Phase | None = None, transaction: bool = True) -> str:
    """Everything as one script. Without `transaction` it has no begin and commit, for tools that open one themselves: then
    indexes are built under a lock, because PostgreSQL builds none concurrently inside a transaction. In a new database all
    tables are empty, so there it is one transaction as well."""
    in_transaction = not transaction or not after
    missing = [m for m in migrations() if m.version > after and phase in (None, m.phase)]
    begin, commit = ("begin;\n", "commit;\n") if transaction else ("", "")
    text = begin + schema_sql(schema) + migrations_table_sql(schema)
    for migration in missing:
        script = migration.sql(schema)
        if migration.outside and in_transaction:
            script = script.removeprefix(OUTSIDE).replace(" concurrently", "")
        script = f"\n-- {migration.label}\n{script}\n"
        outside = migration.outside and not in_transaction
        text += (f"{commit}{script}{begin}" if outside else script) + migration.closing_sql(schema)
    return text + commit
