"""One statement a file, headed by its contract, used by someone, and run with exactly the values it names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tenure
from tenure.store import leases
from tenure.store.query import ALL, Query
from tenure.store.statements import in_schema, quoted, statement

SOURCE = Path(tenure.__file__).parent
FOLDER = SOURCE / "store" / "sql"
FILES = sorted(FOLDER.rglob("*.sql"))
TABLES = (
    "jobs",
    "history",
    "workers",
    "leases",
    "queues",
    "migrations",
    "all_jobs",
    "job_position",
    "keep_history",
    "uuid7",
    "keys",
    "progress",
    "logs",
    "incidents",
    "watches",
    "tallies",
    "counters",
    "schedules",
    "ticks",
    "declarations",
    "living_declarations",
    "history_default",
    "drop_history",
    "make_history",
    "same_app",
)


LISTS = "control/list_"
"""Statements that share one set of values, which is made of filters."""

SHARED = {
    "guard": set(leases.guard(leases.Term("duty", "holder", 1, 1.0))),
    "pick.values": set(ALL.values(1)),
    "pick.unlimited": set(ALL.unlimited()),
}
"""What the functions give by which statements share parameters."""


def name_of(path: Path) -> str:
    return path.relative_to(FOLDER).with_suffix("").as_posix()


def queries() -> dict[str, list[set[str] | None]]:
    """For each statement named in a `Query(...)`: the keys passed, as far as they are written there."""
    found: dict[str, list[set[str] | None]] = {}
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]:
            for call in ast.walk(function):
                if (
                    isinstance(call, ast.Call)
                    and getattr(call.func, "id", "") == "Query"
                    and (name := constant(call.args[0])) is not None
                ):
                    values = call.args[1] if len(call.args) > 1 else ast.Dict([], [])
                    found.setdefault(name, []).append(keys(values, function))
    return found


def constant(name: ast.expr) -> str | None:
    """The name of the file: alone, or with words behind it that choose a variant."""
    if isinstance(name, ast.BinOp):
        name = name.left
    return str(name.value) if isinstance(name, ast.Constant) else None


def keys(values: ast.expr, function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str] | None:
    if isinstance(values, ast.Name):
        given = [
            n.value for n in ast.walk(function) if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == values.id
        ]
        removed = {str(n.targets[0].slice.value) for n in ast.walk(function) if isinstance(n, ast.Delete)}  # type: ignore[attr-defined]
        known = keys(given[0], function) if given else None
        return None if known is None else known - removed
    if isinstance(values, ast.Call):
        return SHARED.get(ast.unparse(values.func))
    if not isinstance(values, ast.Dict):
        return None
    found: set[str] = set()
    for key, value in zip(values.keys, values.values, strict=True):
        if isinstance(key, ast.Constant):
            found.add(str(key.value))
        elif isinstance(value, ast.Call) and (shared := SHARED.get(ast.unparse(value.func))) is not None:
            found |= shared
        elif isinstance(value, ast.Name) and (known := keys(value, function)) is not None:
            found |= known
        else:
            return None
    return found


@pytest.fixture(scope="module")
def used() -> dict[str, list[set[str] | None]]:
    return queries()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_it_is_headed_by_its_contract(path):
    first, *_ = path.read_text("utf-8").splitlines()
    assert re.match(rf"-- {path.stem}: \S", first), first


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_someone_runs_it_with_the_values_it_names(path, used):
    assert name_of(path) in used, "no Query names this file"
    wanted = set(re.findall(r"%\((\w+)\)s", statement(name_of(path), "tenure")))
    for given in used[name_of(path)]:
        assert given == wanted or (given is None and name_of(path).startswith(LISTS))


@pytest.mark.parametrize("name", ["jobs/claim_jobs", "limits/claim_gated"])
def test_an_ordinary_claim_does_not_pay_for_passing_over_refused_jobs(name):
    variant = Query(name).passing_over("{}")
    ordinary, passing_over = (set(re.findall(r"%\((\w+)\)s", statement(n, "tenure"))) for n in (name, variant.name))
    assert set(variant.values) == passing_over - ordinary == {"refused", "only", "peek"}
    assert "passing over" not in statement(name, "tenure")
    assert "/*" not in statement(variant.name, "tenure")


def test_every_query_has_its_file(used):
    assert set(used) <= {name_of(path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_it_names_tables_by_the_token_of_the_schema_only(path):
    text = re.sub(r"--.*", "", path.read_text("utf-8"))
    for table in TABLES:
        assert not re.search(rf"\b(from|join|into|update|using)\s+{table}\b", text), table
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
    """The filters stand in each list, where its plan needs them; none may drift from the others."""
    filter_ = re.compile(r"\(:(\w+)::[\w\[\]]+ is null or [^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)")
    lists = {path.name: {found[0] for found in filter_.finditer(path.read_text())} for path in FOLDER.glob("control/list_*.sql")}
    whole = lists["list_live.sql"]
    assert (len(lists), len(whole)) == (10, 10)
    for name, filters in lists.items():
        assert {one for one in filters if one in whole} == filters, name
        # What a list is about need not be asked again.
        assert {filter_.match(one)[1] for one in whole - filters} <= {"key", "parent", "kind", "states"}, name
