"""The rules for every migration after the first (docs/decisions/0023). Each is shown to reject a file that breaks it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.store.migration_files import MIGRATIONS, OUTSIDE, migrations
from tests.upgrades.later_code import LATER_MIGRATIONS

BIG = "(jobs|history|incidents|logs|keys|progress|tallies)"

NEVER = {
    r"\balter column \w+ (set data )?type\b": "changes a type, which rewrites the table: add a column instead",
    r"\balter column \w+ set not null": "scans the table under a lock: add a check constraint `not valid` instead",
    r"\badd column .*\bdefault (clock_timestamp|gen_random_uuid|random|nextval|tenure\.)": "volatile default: rewrites the table",
    rf"^(update|delete from|insert into|truncate) (only )?tenure\.{BIG}\b": "changes many rows at once: use batches, from code",
    r"^(lock|vacuum|cluster|do)\b": "takes locks that this test cannot judge",
    r"\bset (local |session )?(lock|statement)_timeout\b": "sets a timeout, which is up to the migrator",
    r"^reindex (?!.*\bconcurrently\b)": "builds an index under a lock: use `concurrently`",
    r"^create (or replace )?(function|procedure|view)\b": "belongs to functions/ or views/",
    r"^alter (?!index).*\brename\b": "renames what current workers use: add a new one instead",
}
IN_PRE = {
    r"^drop (?!index concurrently if exists)": "removes something before old workers are gone",
    r"^(revoke|truncate)\b": "removes something before old workers are gone",
    r"\bdrop (column|constraint|default|expression|identity)\b": "removes something before old workers are gone",
    r"^alter index .*\brename\b": "renames something before old workers are gone",
    r"\badd column (?=[^,]*\bnot null\b)(?![^,]*\bdefault\b)": "needs a default: old workers do not fill the column",
}
INDEXES_ONLY = (
    r"^(create (unique )?index concurrently|drop index concurrently|reindex .*concurrently|alter table \S+ validate|analyze)\b"
)

_INDEX = re.compile(
    r"^create (?:unique )?index (?P<concurrently>concurrently )?(?P<name>\w+) on (?P<only>only )?tenure\.(?P<table>\w+)"
)
_LOCKING = re.compile(
    r"^(?:alter table (?:if exists )?(?:only )?|create (?:unique )?index \w+ on (?:only )?|drop table (?:if exists )?)"
    r"tenure\.(\w+)"
)
_CONSTRAINT = re.compile(r"^alter table (?:only )?tenure\.(\w+) .*\badd constraint\b(?!.*\b(?:not valid|using index)\b)")


def problems(label: str, text: str) -> list[str]:
    """Which rules the file breaks."""
    bare = re.sub(r"--.*$", "", text, flags=re.MULTILINE).lower()
    statements = [" ".join(statement.split()) for statement in bare.split(";") if statement.strip()]
    rules = NEVER | (IN_PRE if "_pre_" in label else {})
    found = [why for statement in statements for rule, why in rules.items() if re.search(rule, statement)]
    found += _problems_of_several_tables(statements, outside=text.startswith(OUTSIDE))
    found += _problems_of_existing_tables(statements, outside=text.startswith(OUTSIDE))
    if text.startswith(OUTSIDE) and not all(re.match(INDEXES_ONLY, statement) for statement in statements):
        found.append("runs outside a transaction, which is for indexes only")
    return found


def _problems_of_several_tables(statements: list[str], *, outside: bool) -> Iterator[str]:
    """Prepared statements that settle jobs lock history before jobs; transactions of handlers lock jobs before history."""
    made = {table for statement in statements for table in re.findall(r"^create table tenure\.(\w+)", statement)}
    locked = {match[1] for statement in statements if (match := _LOCKING.match(statement))}
    if len(locked - made) > 1 and not outside:
        yield f"locks {' and '.join(sorted(locked - made))} in one transaction, which may deadlock with workers: use two files"


def _problems_of_existing_tables(statements: list[str], *, outside: bool) -> Iterator[str]:
    """What is quick on a table that the same file creates is not on one with rows."""
    made = {table for statement in statements for table in re.findall(r"^create table tenure\.(\w+)", statement)}
    for place, statement in enumerate(statements):
        if (constraint := _CONSTRAINT.match(statement)) and constraint[1] not in made:
            yield "scans the table under a lock: add the constraint `not valid`, or `using index`"
        if not (index := _INDEX.match(statement)) or index["table"] in made:
            continue
        if index["table"] == "history":
            if not index["only"]:
                yield "history is partitioned: create the index `on only tenure.history`, and on its partitions from code"
        elif not (index["concurrently"] and outside):
            yield f"builds an index under a lock: use `concurrently`, in a file that starts with `{OUTSIDE.strip()}`"
        elif f"drop index concurrently if exists tenure.{index['name']}" not in statements[:place]:
            yield "does not drop the invalid index that an attempt which failed leaves behind"


@pytest.mark.parametrize("migration", [m for m in migrations() if m.version > 1], ids=lambda migration: migration.label)
def test_every_migration_after_the_first_follows_the_rules(migration):
    assert problems(migration.label, migration.sql("tenure")) == []


@pytest.mark.parametrize(("label", "text"), LATER_MIGRATIONS.items(), ids=LATER_MIGRATIONS)
def test_the_migrations_with_which_upgrades_are_tested_follow_the_rules(label, text):
    assert problems(label, text) == []


DEFINITIONS = [file for folder in ("views", "functions") for file in (Path(str(MIGRATIONS)).parent / folder).glob("*.sql")]


@pytest.mark.parametrize("file", DEFINITIONS, ids=lambda file: file.stem)
def test_every_function_and_view_is_in_a_file_of_its_name_headed_by_its_contract(file):
    text = file.read_text("utf-8")
    assert text.startswith(f"-- {file.stem}: ")
    assert re.findall(r"^create .*?(?:function|view) tenure\.(\w+)", text, re.MULTILINE) == [file.stem]
    assert re.search(rf"^create or replace {file.parent.name[:-1]} ", text, re.MULTILINE)
    assert "security definer" not in text or "set search_path = pg_catalog, pg_temp" in text


CONCURRENTLY = (
    f"{OUTSIDE}drop index concurrently if exists tenure.jobs_x;\ncreate index concurrently jobs_x on tenure.jobs (key);\n"
)

GOOD = {
    "0002_pre_columns": "alter table tenure.jobs add column system jsonb, add column weight int not null default 1;",
    "0002_pre_table": "create table tenure.new (id int primary key); create index new_id on tenure.new (id);",
    "0002_pre_index": CONCURRENTLY,
    "0002_pre_history": "create index history_x on only tenure.history (queue);",
    "0002_pre_check": "alter table tenure.keys add constraint keys_x check (key <> 'x') not valid; -- drop column in a comment",
    "0002_post_columns": "alter table tenure.jobs drop column capability;",
    "0002_post_function": "drop function tenure.key_term(text);",
    "0002_post_index": "drop index tenure.jobs_pending; alter index tenure.jobs_open rename to jobs_pending;",
}
BAD = [
    ("0002_pre_x", "create index jobs_x on tenure.jobs (key);", "under a lock"),
    ("0002_pre_x", "create unique index keys_x on tenure.keys (job_id);", "under a lock"),
    ("0002_pre_x", "create index concurrently jobs_x on tenure.jobs (key);", "outside a transaction"),
    ("0002_pre_x", OUTSIDE + "create index concurrently jobs_x on tenure.jobs (key);", "invalid index"),
    ("0002_pre_x", CONCURRENTLY + "alter table tenure.jobs add column x int;", "for indexes only"),
    ("0002_pre_x", "create index history_x on tenure.history (queue);", "partitioned"),
    ("0002_post_x", "create index jobs_x on tenure.jobs (key);", "under a lock"),
    ("0002_pre_x", "alter table tenure.jobs drop column key;", "old workers"),
    ("0002_pre_x", "alter table tenure.jobs add column x int, drop constraint jobs_bounds;", "old workers"),
    ("0002_pre_x", "drop table tenure.watches;", "old workers"),
    ("0002_pre_x", "drop function tenure.uuid7();", "old workers"),
    ("0002_pre_x", "alter index tenure.jobs_due rename to jobs_ready;", "old workers"),
    ("0002_pre_x", "alter table tenure.jobs add column x int not null;", "needs a default"),
    ("0002_pre_x", "alter table tenure.jobs add column x int not null, add column y int default 1;", "needs a default"),
    ("0002_pre_x", "alter table tenure.jobs\n    rename column key\n    to unique_key;", "renames"),
    ("0002_post_x", "alter table tenure.jobs rename column key to unique_key;", "renames"),
    ("0002_post_x", "alter table tenure.jobs alter column attempt type bigint;", "rewrites"),
    ("0002_pre_x", "ALTER TABLE tenure.jobs ALTER COLUMN attempt SET DATA TYPE bigint;", "rewrites"),
    ("0002_post_x", "alter table tenure.jobs alter column key set not null;", "not valid"),
    ("0002_pre_x", "alter table tenure.jobs add column x uuid default gen_random_uuid();", "volatile"),
    ("0002_pre_x", "alter table tenure.jobs add constraint jobs_x check (key <> '');", "not valid"),
    ("0002_pre_x", "update tenure.jobs set meta = '{}';", "batches"),
    ("0002_post_x", "delete from tenure.history where state = 'failed';", "batches"),
    ("0002_pre_x", "set local lock_timeout = 0; alter table tenure.jobs add column x int;", "timeout"),
    ("0002_pre_x", "create or replace function tenure.uuid7() returns uuid return null;", "functions/"),
    ("0002_pre_x", "do $$ begin execute 'drop table tenure.jobs'; end $$;", "cannot judge"),
    ("0002_post_x", "reindex table tenure.jobs;", "concurrently"),
    ("0002_pre_x", "alter table tenure.jobs add column x int; alter table tenure.history add column x int;", "deadlock"),
    ("0002_pre_x", "alter table tenure.jobs add column x int; create index a on only tenure.history (x);", "deadlock"),
]


@pytest.mark.parametrize(("label", "text"), GOOD.items(), ids=GOOD)
def test_what_the_rules_allow(label, text):
    assert problems(label, text) == []


@pytest.mark.parametrize(("label", "text", "why"), BAD, ids=[text[-60:].replace("\n", " ") for _, text, _ in BAD])
def test_what_the_rules_reject(label, text, why):
    assert any(why in problem for problem in problems(label, text))
