"""One statement a file, headed by its contract. It has one builder, which passes the values it names and declares its columns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints
from uuid import UUID

import psycopg
import pytest

import tenure
from tenure.client.filters import Filters
from tenure.store import leases
from tenure.store.borrowed.positional import positional
from tenure.store.jobs import FinishedRuns
from tenure.store.json_columns import is_json
from tenure.store.query import ALL, Query, Scalar, columns_of
from tenure.store.statements import PASSING_OVER, SKIPPING, in_schema, quoted, statement

SOURCE = Path(tenure.__file__).parent
FOLDER = SOURCE / "store" / "sql"
FRAGMENTS = FOLDER / "fragments"
FILES = sorted(path for path in FOLDER.rglob("*.sql") if path.parent != FRAGMENTS)

LISTS = "lists/list_"
"""Statements that share one set of values, which is made of filters. Each names those that its index does not serve."""

SHARED = {
    "guard": set(leases.guard(leases.Term("duty", "holder", 1, 1.0))),
    "pick.values": set(ALL.values(1)),
    "pick.unlimited": set(ALL.unlimited()),
    "runs._asdict": set(FinishedRuns._fields),
}
"""What the functions return by which statements share parameters."""

LISTED = {*Filters().values(None), "before", "floor", "limit"}
"""What the lists get."""

PYTHON = {
    "bool": bool,
    "int2": int,
    "int4": int,
    "int8": int,
    "float4": float,
    "float8": float,
    "numeric": Decimal,
    "text": str,
    "uuid": UUID,
    "timestamptz": datetime,
    "_text": list[str],
    "_uuid": list[UUID],
}
"""What psycopg makes of PostgreSQL's types."""


@dataclass(frozen=True)
class Built:
    """A `Query(...)` in the code."""

    module: str
    keys: set[str] | None
    """Of the values it passes; None: they cannot be read from the code."""
    returns: Any


def name_of(path: Path) -> str:
    return path.relative_to(FOLDER).with_suffix("").as_posix()


def queries() -> dict[str, list[Built]]:
    """By the name of the statement."""
    found: dict[str, list[Built]] = {}
    for path in SOURCE.rglob("*.py"):
        module = ".".join(("tenure", *path.relative_to(SOURCE).with_suffix("").parts))
        tree = ast.parse(path.read_text("utf-8"))
        for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]:
            for call in ast.walk(function):
                if (
                    isinstance(call, ast.Call)
                    and getattr(call.func, "id", "") == "Query"
                    and (name := constant(call.args[0])) is not None
                ):
                    values = call.args[2] if len(call.args) > 2 else ast.Dict([], [])
                    returns = eval(ast.unparse(call.args[1]), vars(import_module(module)))
                    found.setdefault(name, []).append(Built(module, keys(values, function), returns))
    return found


def constant(name: ast.expr) -> str | None:
    """The name of the file: alone, or with words behind it that choose a variant."""
    if isinstance(name, ast.BinOp):
        name = name.left
    return str(name.value) if isinstance(name, ast.Constant) else None


def keys(values: ast.expr, function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str] | None:
    if isinstance(values, ast.Name):
        if values.id == "values" and any(ast.unparse(given.annotation or values) == "Values" for given in function.args.args):
            return LISTED
        given = [
            n.value for n in ast.walk(function) if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == values.id
        ]
        return keys(given[0], function) if given else None
    if isinstance(values, ast.Call):
        return SHARED.get(ast.unparse(values.func))
    if not isinstance(values, ast.Dict):
        return None
    found: set[str] = set()
    for key, value in zip(values.keys, values.values, strict=True):
        known = {str(key.value)} if isinstance(key, ast.Constant) else keys(value, function)
        if known is None:
            return None
        found |= known
    return found


def variants(name: str) -> Iterator[str]:
    """The statement, and the same with what its marks add."""
    yield name
    text = (FOLDER / f"{name}.sql").read_text("utf-8")
    if "/* skip locked */" in text:
        yield name + SKIPPING
    if "/* passing over: " in text:
        yield name + PASSING_OVER


@pytest.fixture(scope="module")
def connection(shared_dsn) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shared_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def type_names(connection) -> dict[int, str]:
    return dict(connection.execute("select oid::bigint, typname from pg_type").fetchall())


@pytest.fixture(scope="module")
def objects(connection) -> list[str]:
    """All that the schema has by name: tables, views, sequences and functions."""
    found = connection.execute("""
        select c.relname from pg_class c where c.relnamespace = 'tenure'::regnamespace and c.relkind in ('r', 'p', 'v', 'S')
        union select p.proname from pg_proc p where p.pronamespace = 'tenure'::regnamespace""").fetchall()
    return [name for (name,) in found]


@pytest.fixture(scope="module")
def used() -> dict[str, list[Built]]:
    return queries()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_it_is_headed_by_its_contract(path):
    first, *_ = path.read_text("utf-8").splitlines()
    assert re.match(rf"-- {path.stem}: \S", first), first


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_builder_in_the_module_of_its_folder_passes_the_values_it_names(path, used):
    name = name_of(path)
    assert {built.module for built in used.get(name, [])} == {f"tenure.store.{path.parent.name}"}
    wanted = set(re.findall(r"%\((\w+)\)s", statement(name, "tenure")))
    for built in used[name]:
        assert built.keys is not None, "its values cannot be read from the code: name them in a dict there"
        # What a list is about need not be asked again.
        spare = {"key", "parent", "kind", "states"} if name.startswith(LISTS) else set()
        assert wanted <= built.keys
        assert built.keys - wanted <= spare


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_its_columns_are_those_that_its_builder_declares(path, used, connection, type_names):
    for name in variants(name_of(path)):
        described = describe(connection, type_names, name)
        for built in used[name_of(path)]:
            if built.returns is None:
                assert described == []
            elif isinstance(built.returns, Scalar):
                assert len(described) == 1
            else:
                assert tuple(column for column, _ in described) == columns_of(built.returns)
                assert described == list(declared(built.returns))


def describe(connection: psycopg.Connection, type_names: dict[int, str], name: str) -> list[tuple[str, Any]]:
    """The columns that PostgreSQL announces for a statement, with the types that psycopg makes of theirs."""
    prepared = connection.pgconn.prepare(b"", positional(name, "tenure").sql.encode())
    assert prepared.status == psycopg.pq.ExecStatus.COMMAND_OK, prepared.error_message.decode()
    result = connection.pgconn.describe_prepared(b"")
    return [(result.fname(at).decode(), PYTHON[type_names[result.ftype(at)]]) for at in range(result.nfields)]


def declared(row_type: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a NamedTuple with their types, not regarding None."""
    for name, hint in get_type_hints(row_type, include_extras=True).items():
        if is_json(hint):
            yield name, str
        elif hasattr(hint, "_fields"):
            yield from declared(hint)
        elif get_origin(hint) is Literal:
            yield name, str
        else:
            parts = [part for part in get_args(hint) if part is not NoneType]
            yield name, parts[0] if NoneType in get_args(hint) else hint


@pytest.mark.parametrize("name", ["jobs/claim_jobs", "limits/claim_limited"])
def test_an_ordinary_claim_does_not_pay_for_passing_over_refused_jobs(name):
    variant = Query(name, None).passing_over("{}")
    ordinary, passing_over = (set(re.findall(r"%\((\w+)\)s", statement(n, "tenure"))) for n in (name, variant.name))
    assert set(variant.values) == passing_over - ordinary == {"refused", "only", "peek"}
    assert "passing over" not in statement(name, "tenure")
    assert "/*" not in statement(variant.name, "tenure")


def test_every_query_has_its_file(used):
    assert set(used) <= {name_of(path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_it_names_tables_by_the_token_of_the_schema_only(path, objects):
    text = re.sub(r"--.*", "", path.read_text("utf-8"))
    own = set(re.findall(r"(?:with|with recursive|,|\))\s+(\w+)(?: \([^()]*\))? as (?:not )?(?:materialized )?\(", text))
    for name in set(objects) - own:
        assert not re.search(rf"\b(from|join|into|update|using)\s+{name}\b", text), name
    assert "public." not in text


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_it_is_one_statement_without_a_percent_sign_left_over(path):
    text = re.sub(r"--.*", "", path.read_text("utf-8")).strip()
    assert ";" not in text.removesuffix(";")
    assert re.sub(r"%\(\w+\)s", "", statement(name_of(path), "tenure")).replace("%%", "").count("%") == 0


def test_another_schema_replaces_the_token_everywhere_and_nothing_else():
    text = "select tenure.uuid7(), 'tenure migrate', mytenure.x from tenure.jobs where format('tenure.%I', a) = b"
    assert in_schema(text, "My Jobs") == (
        """select "My Jobs".uuid7(), 'tenure migrate', mytenure.x from "My Jobs".jobs where format('"My Jobs".%I', a) = b"""
    )


def test_names_are_quoted_where_they_must_be():
    assert [quoted(name) for name in ("tenure", "My Jobs", 'a"b', "1st")] == ["tenure", '"My Jobs"', '"a""b"', '"1st"']


def test_all_lists_filter_alike():
    """Each list has its own copy of the filters, where its plan needs them. No copy may differ from the others."""
    filter_ = re.compile(r"\(:(\w+)::[\w\[\]]+ is null or [^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)")
    lists = {path.name: {found[0] for found in filter_.finditer(path.read_text())} for path in FOLDER.glob("lists/list_*.sql")}
    whole = lists["list_live.sql"]
    assert (len(lists), len(whole)) == (10, 10)
    for name, filters in lists.items():
        assert {one for one in filters if one in whole} == filters, name
        # What a list is about need not be asked again.
        assert {filter_.match(one)[1] for one in whole - filters} <= {"key", "parent", "kind", "states"}, name


ENDS_JOBS = re.compile(r"delete from tenure\.jobs\b|update tenure\.jobs\b[^;]*?claim_id = null")
INCLUDES = "/* include: job_endings */"

REQUEUE_ONLY = {"claims/disown_jobs"}
"""They take jobs from runs that do not exist, and only requeue: no run has ended."""


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_statement_that_ends_jobs_or_runs_includes_what_learns_of_endings(path):
    text = path.read_text("utf-8")
    expected = name_of(path) not in REQUEUE_ONLY and ENDS_JOBS.search(text) is not None
    assert (INCLUDES in text) is expected


def test_only_the_shared_fragment_counts_endings_and_looks_for_waiting_clients():
    ending = [path for path in FILES if INCLUDES in path.read_text("utf-8") and path.parent.name != "testing"]
    assert len(ending) == 12
    for path in ending:
        text = path.read_text("utf-8")
        assert "tenure.tallies" not in text
        assert "from tenure.watches w where w.job_id" not in text.replace("delete from tenure.watches w", "")


def test_a_fragment_is_headed_by_its_contract_and_is_used():
    for path in FRAGMENTS.glob("*.sql"):
        first, *_ = path.read_text("utf-8").splitlines()
        assert re.match(rf"-- {path.stem}: \S", first), first
        assert any(f"/* include: {path.stem} */" in file.read_text("utf-8") for file in FILES)
