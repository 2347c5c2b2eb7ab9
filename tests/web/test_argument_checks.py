"""Arguments that are checked by published schemas: neither of them may make the server read other addresses, nor keep it busy."""

from __future__ import annotations

import json
import socket
from datetime import date, datetime, time, timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import UUID4, AnyUrl, AwareDatetime, BaseModel, Field, TypeAdapter

from tenure import Tenure
from tenure.web import argument_checks
from tenure.web.argument_checks import MOST_AT_ONCE, WITHIN, ArgumentCheck, TooSlow
from tests.web.serving import Serving


class Left(BaseModel):
    inner: Left | Right | None = None


class Right(BaseModel):
    inner: Left | Right | None = None


def paths(schema: dict[str, Any], value: Any) -> list[str]:
    return [one["path"] for one in ArgumentCheck(schema).problems_within(WITHIN, value, "args")]


@pytest.mark.parametrize(
    ("schema", "fitting", "wrong"),
    [
        ({"pattern": "^a+$"}, "aa", "b"),
        ({"pattern": r"^\p{Lu}\z"}, "Ä", "ä"),  # of Rust, as pydantic has them: Python cannot read it
        ({"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": False}, {"n_a": 1}, {"n_a": "x"}),
        ({"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": False}, {"n_a": 1}, {"m_a": 1}),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}, {"a": "x", "b": 1}, {"b": "x"}),
        ({"uniqueItems": True}, [1, True, "1", {"a": 1}, {"a": 2}], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, 1, "x"),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "integer"}, 1, "x"),
    ],
)
def test_what_fits_and_what_does_not(schema, fitting, wrong):
    assert paths(schema, fitting) == []
    assert len(paths(schema, wrong)) == 1


@pytest.mark.parametrize(
    ("annotation", "fitting", "wrong"),
    [
        (UUID, ["01a1f5c6-f8d8-75e3-a495-2499f9d97521", "01a1f5c6f8d875e3a4952499f9d97521"], ["", "me", "01a1f5c6"]),
        (UUID4, ["b5e1f2a0-3c4d-4e5f-8a9b-0c1d2e3f4a5b"], ["me"]),
        (
            datetime,
            ["2026-01-01T10:00:00Z", "2026-01-01 10:00", "2026-01-01", "1767225600"],
            ["yesterday", "2026-13-01T10:00:00"],
        ),
        (AwareDatetime, ["2026-01-01T10:00:00+01:00"], ["yesterday"]),
        (date, ["2026-01-01"], ["2026-02-30", "01.02.2026"]),
        (time, ["10:00", "10:00:00.5+02:00"], ["25:00", "noon"]),
        (timedelta, ["PT5M", "1 day, 00:00:00", "00:05:00"], ["soon"]),
        (IPv4Address, ["192.0.2.1"], ["300.1.1.1", "::1"]),
        (IPv6Address, ["::1"], ["192.0.2.1"]),
        (AnyUrl, ["https://example.com", "not checked here"], []),
    ],
)
def test_texts_are_read_as_a_worker_reads_them(annotation, fitting, wrong):
    for optional in (annotation, annotation | None):
        schema = TypeAdapter(optional).json_schema()
        assert [paths(schema, text) for text in fitting] == [[]] * len(fitting)
        assert [paths(schema, text) for text in wrong] == [["args"]] * len(wrong)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog", "wolf"]
    owner: Cat | None = None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"kind": "cat", "lives": 9}, []),
        ({"kind": "wolf"}, []),
        ({"kind": "cat", "lives": "x"}, ["args.lives"]),
        ({"kind": "wolf", "owner": {"kind": "cat"}}, ["args.owner.lives"]),
        ({"kind": "cow"}, ["args"]),
        ({"kind": ["cat"]}, ["args"]),
        ({}, ["args"]),
        ("cat", ["args"]),
    ],
)
def test_what_is_wrong_in_the_type_that_a_field_names_is_named(value, expected):
    schema = TypeAdapter(Annotated[Cat | Dog, Field(discriminator="kind")]).json_schema()
    assert paths(schema, value) == expected


@pytest.mark.parametrize("discriminator", [7, {}, {"propertyName": 7, "mapping": 7}, {"propertyName": "a", "mapping": {"b": 7}}])
def test_a_discriminator_that_names_nothing_is_ignored(discriminator):
    schema = {"oneOf": [{"required": ["a"]}, {"required": ["c"]}], "discriminator": discriminator}
    assert (paths(schema, {"a": "b"}), paths(schema, {})) == ([], ["args"])


@pytest.mark.parametrize(
    ("alternatives", "value", "expected"),
    [
        ([{"items": {"type": "integer"}}, {"type": "null"}], [1, "x"], ["args.1"]),
        ([{"type": "null"}, {"items": {"type": "integer"}}], [1, "x"], ["args.1"]),
        ([{"items": {"type": "integer"}}, {"type": "null"}], None, []),
        ([{"type": "integer"}, {"type": "null"}], 1, []),
        ([{"type": "integer"}], None, ["args"]),
        ([{"type": "null"}], 1, ["args"]),
        ([{"type": "integer"}, {"items": {"type": "integer"}, "type": "array"}, {"type": "null"}], ["x"], ["args"]),
    ],
)
def test_what_is_wrong_in_an_optional_value_is_named(alternatives, value, expected):
    assert paths({"anyOf": alternatives}, value) == expected


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a|a)*$"}, "a" * 5000 + "b"),
        ({"patternProperties": {"^(a|a)*$": {"type": "null"}}}, {"a" * 5000 + "b": 1}),
        ({"uniqueItems": True}, [{"n": n} for n in range(5000)] + [{"n": 0}]),
    ],
)
def test_what_used_to_take_hours_is_checked_at_once(schema, value):
    assert len(paths(schema, value)) == (0 if "patternProperties" in schema else 1)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"multipleOf": 0.1}, 10**400),
        ({"$ref": "#/$defs/missing"}, 1),
        ({"$ref": "#"}, 1),
        ({"pattern": "(?=lookahead)"}, "x"),
        ({"format": "email"}, "x"),
        ({"format": "uuid"}, 1),
    ],
)
def test_what_cannot_be_checked_here_is_left_to_the_worker(schema, value):
    assert paths(schema, value) == []


async def test_large_arguments_are_checked_too(serving: Serving, sql):
    await publish(sql, "sum", {"properties": {"all": {"type": "array", "items": {"type": "integer"}}}})
    web = await serving.admin()
    fitting = [1] * 100 * MOST_AT_ONCE
    wrong = await web.post("/jobs/sum/dispatch", json={"args": {"all": [*fitting, "x"]}})
    assert (wrong.status_code, [one["path"] for one in wrong.json()["errors"]]) == (422, [f"args.all.{len(fitting)}"])
    assert (await web.post("/jobs/sum/dispatch", json={"args": {"all": fitting}})).status_code == 202


async def test_arguments_that_take_too_long_to_check_are_refused(serving: Serving, sql, monkeypatch):
    """They used to be left to the worker, without a word."""
    monkeypatch.setattr(argument_checks, "WITHIN", 0.1)
    await publish(sql, "nested", Left.model_json_schema())
    value: dict[str, Any] = {"inner": "wrong"}
    for _ in range(50):
        value = {"inner": value}
    web = await serving.admin()
    refused = await web.post("/jobs/nested/dispatch", json={"args": value})
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:tenure:problem:unchecked")
    assert [one["path"] for one in refused.json()["errors"]] == ["args"]
    assert refused.json()["detail"].endswith("start the web server with --app so that it imports the handlers")
    assert (await web.post("/jobs/nested/dispatch", json={"args": {"inner": {"inner": None}}})).status_code == 202


def test_alternatives_in_alternatives_end_the_check_when_its_time_is_over():
    value: dict[str, Any] = {"inner": "wrong"}
    for _ in range(50):
        value = {"inner": value}
    with pytest.raises(TooSlow):  # would take 2 ** 50 steps
        ArgumentCheck(Left.model_json_schema()).problems_within(0.1, value, "args")
    assert paths(Left.model_json_schema(), {"inner": {"inner": 1}}) == ["args.inner"]


@pytest.mark.parametrize(
    "schema", [{"type": "nonsense"}, {"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}]
)
def test_schemas_that_cannot_be_used(schema):
    with pytest.raises(ValueError, match=r"(?i)schema"):
        ArgumentCheck(schema)


async def publish(sql, name: str, schema: dict[str, Any]) -> None:
    definition = json.dumps({"input": schema})
    sql("insert into tenure.kinds (name, app, definition) values (%s, 'other:app', %s::jsonb)", name, definition)


@pytest.mark.parametrize(
    "definition", [[], "x", None, {"input": []}, {"queue": 5}, {"max_attempts": "many"}, {"expires": "late"}, {"key_for": {}}]
)
async def test_what_no_worker_can_have_published_hides_no_other_kind(serving: Serving, sql, definition):
    sql("insert into tenure.kinds (name, app, definition) values ('odd', 'x', %s::jsonb)", json.dumps(definition))
    await publish(sql, "fine", {"type": "object"})
    web = await serving.admin()
    assert [kind["name"] for kind in (await web.get("/kinds")).json()["kinds"]] == ["fine"]
    assert (await web.post("/jobs/odd/dispatch", json={"args": {}})).status_code == 404
    assert (await web.post("/jobs/fine/dispatch", json={"args": {}})).status_code == 202
    assert (await web.get("/workflows")).status_code == 200


async def test_a_published_schema_makes_the_server_read_nothing(serving: Serving, sql, tmp_path):
    """It used to fetch every address and every file that a `$ref` names, in the event loop of all requests."""
    secret = tmp_path / "secret.json"
    secret.write_text('{"const": "swordfish"}')
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        port = listening.getsockname()[1]
        await publish(sql, "remote", {"$ref": f"http://127.0.0.1:{port}/schema.json"})
        await publish(sql, "file", {"properties": {"a": {"$ref": secret.as_uri()}}})
        web = await serving.admin()
        for kind in ("remote", "file"):
            answer = await web.post(f"/jobs/{kind}/dispatch", json={"args": {"a": "x"}})
            assert (answer.status_code, "swordfish" in answer.text) == (202, False)
        with pytest.raises(BlockingIOError):
            listening.accept()


async def test_a_pattern_of_a_handler_is_checked_as_its_worker_checks_it(dsn, app_without_jobs: Tenure, serving: Serving):
    app = Tenure(dsn)

    @app.job
    async def rename(name: Annotated[str, Field(pattern=r"^(\p{L}+\s?)*$")]) -> None: ...

    async with app.running():
        web = await serving.admin(app=app_without_jobs)
        hostile = await web.post("/jobs/rename/dispatch", json={"args": {"name": "a" * 100_000 + "!"}})
        assert (hostile.status_code, [one["path"] for one in hostile.json()["errors"]]) == (422, ["args.name"])
        assert (await web.post("/jobs/rename/dispatch", json={"args": {"name": "Ärger im Büro"}})).status_code == 202
    await app.close()
