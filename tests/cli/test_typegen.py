"""`tenure typegen`. That TypeScript accepts what it writes is tested with the tracker, in tests/web/test_tracker.py."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from tenure.cli.typescript import module_of
from tenure.model.published_kind import PublishedKind
from tests.cli.test_cli import tenure

JOBS = '''
from tenure import Tenure
app = Tenure()

@app.job
async def export_users(format: str, rows: int = 10) -> dict[str, int]:
    """Exports all users."""
    return {}

@app.job(name="billing.charge")
async def charge(cents: int) -> None: ...
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "jobs.py").write_text(JOBS)
    return tmp_path


def test_it_writes_what_the_code_defines_without_a_database(folder):
    shown = tenure("typegen", "--app", "jobs:app", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "export interface ExportUsersInput {\n  format: string;\n  rows?: number;\n}" in shown.stdout
    assert "export type ExportUsersOutput = Record<string, number>;" in shown.stdout
    assert "/** Exports all users. */\nexport function createExportUsersJob(" in shown.stdout
    assert 'getTenure().createJob("billing.charge", options)' in shown.stdout
    assert 'from "tenure-tracker";' in shown.stdout
    chosen = tenure(
        "typegen", "--app", "jobs:app", "--kind", "billing.charge", "--import", "/static/tenure.js", cwd=folder
    ).stdout
    assert "ExportUsers" not in chosen
    assert 'from "/static/tenure.js";' in chosen


def test_it_writes_a_file_and_checks_it(folder):
    words = ("typegen", "--app", "jobs:app", "-o", "src/jobs.ts")
    assert tenure(*words, "--check", cwd=folder).returncode == 1
    made = tenure(*words, cwd=folder)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "src/jobs.ts: 2 kinds\n")
    written = (folder / "src" / "jobs.ts").stat().st_mtime_ns
    assert tenure(*words, "--check", cwd=folder).returncode == 0
    assert tenure(*words, cwd=folder).returncode == 0
    assert (folder / "src" / "jobs.ts").stat().st_mtime_ns == written
    assert tenure("typegen", "--app", "jobs:app", "--check", cwd=folder).returncode == 2
    unknown = tenure("typegen", "--app", "jobs:app", "--kind", "nope", cwd=folder)
    assert (unknown.returncode, "billing.charge, export_users" in unknown.stderr) == (2, True)


async def test_it_writes_what_workers_have_published(app, dsn):
    empty = tenure("typegen", "--dsn", dsn)
    assert (empty.returncode, "start a worker" in empty.stderr) == (1, True)

    @app.job
    async def send_email(to: str) -> bool:
        return True

    async with app.running():
        pass
    shown = tenure("typegen", "--dsn", dsn)
    assert shown.returncode == 0, shown.stderr
    assert "export interface SendEmailInput {\n  to: string;\n}" in shown.stdout
    assert "export type SendEmailOutput = boolean;" in shown.stdout


async def test_it_writes_the_same_with_the_code_and_without(app, dsn):
    """The database keeps the members of a schema by their length."""

    class Address(BaseModel):
        street: str
        zip: str

    @app.job
    async def send_parcel(weight: int, to: Address, express: bool = False) -> dict[str, Address]:
        return {"to": to}

    async with app.running():
        pass
    shown = tenure("typegen", "--dsn", dsn)
    of_code = module_of([PublishedKind.of(send_parcel.kind)])
    assert shown.stdout == of_code
    assert "{\n  express?: boolean;\n  to: Address;\n  weight: number;\n}" in of_code


def written(schema, **more) -> str:
    return module_of([PublishedKind(name="k", input=schema, **more)]).partition("/** The kinds")[0]


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        (None, "Record<string, unknown>"),
        ({}, "unknown"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "(string | null)[]"),
        ({"type": ["integer", "number", "null"]}, "number | null"),
        ({"enum": ["a", 1, None, True]}, '"a" | 1 | null | true'),
        ({"const": 'a"b'}, '"a\\"b"'),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "Record<string, number>"),
        ({"type": "object", "additionalProperties": False}, "Record<string, never>"),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "boolean"}}, "[string, ...boolean[]]"),
        ({"type": "array", "prefixItems": [{"type": "string"}], "maxItems": 1}, "[string]"),
        ({"allOf": [{"type": "string"}, {"enum": ["a", "b"]}]}, 'string & ("a" | "b")'),
        ({"$ref": "#/nowhere"}, "unknown"),
        ({"$ref": "https://example.com/schema"}, "unknown"),
        ({"type": "date"}, "unknown"),
        ({"type": {"not": "a type"}}, "unknown"),
        ({"anyOf": []}, "unknown"),
    ],
)
def test_every_part_of_a_schema_has_a_type(schema, type_):
    assert f"export type KInput = {type_};" in written(schema)


def test_definitions_are_shared_where_they_are_the_same():
    def kind(name: str, fields: dict) -> PublishedKind:
        definition = {"type": "object", "properties": fields, "required": list(fields)}
        return PublishedKind(name=name, input={"$ref": "#/$defs/Item", "$defs": {"Item": definition}})

    text = module_of(
        [kind("a", {"x": {"type": "string"}}), kind("b", {"x": {"type": "string"}}), kind("c", {"y": {"type": "string"}})]
    )
    assert text.count("export interface Item {") == 1
    assert "export type AInput = Item;" in text
    assert "export type BInput = Item;" in text
    assert "export type CInput = ItemInput;" in text
    assert "export interface ItemInput {\n  y: string;\n}" in text


def test_names_that_collide_or_are_not_identifiers_are_changed():
    text = module_of([PublishedKind(name=name) for name in ("a.b", "a_b", "a-b", "2x", "tenure", "名前", "!")])
    for made in (
        "createABJob",
        "createAB2Job",
        "createAB3Job",
        "createKind2xJob",
        "createTenureJob",
        "create名前Job",
        "createKindJob",
    ):
        assert text.count(f"function {made}(") == 1


def test_hostile_schemas_end_no_comment_and_no_text():
    hostile = "x */ alert(1) /*"
    schema = {"type": "object", "description": hostile, "properties": {'a"\n b': {"type": "string", "description": hostile}}}
    text = module_of([PublishedKind(name='k"];\n alert(1)', input=schema, description=hostile)])
    assert "*/ alert" not in text
    assert '"a\\"\\n b"?: string;' in text
    assert '"k\\"];\\n alert(1)"' in text
    deep: dict = {"type": "string"}
    for _ in range(500):
        deep = {"type": "array", "items": deep}
    assert "unknown" in written(deep)
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert "next?: Node;" in written({"$ref": "#/$defs/Node", "$defs": {"Node": node}})
    assert "next?: KInput;" in written({"type": "object", "properties": {"next": {"$ref": "#"}}})
