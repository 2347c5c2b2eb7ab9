"""The description of the API is that of the routes, and answers are as it says."""

from __future__ import annotations

import os
import re
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from starlette.routing import Route

from tenure.web.openapi import document
from tenure.web.route_table import ROUTES
from tenure.web.web_app import WebApp
from tenure.web.web_options import WebOptions
from tests.waiting import until
from tests.web.test_jobs import send

DOCUMENT = document()


def operation(method: str, path: str) -> dict[str, Any]:
    return DOCUMENT["paths"][path][method.lower()]


def check(answer, method: str, path: str) -> None:
    """The answer has a status and a body that the description knows."""
    told = operation(method, path)["responses"]
    assert str(answer.status_code) in told, (method, path, answer.status_code, answer.text)
    content = told[str(answer.status_code)].get("content", {})
    media = answer.headers.get("content-type", "").partition(";")[0]
    if not content:
        assert answer.content == b""
        return
    assert media in content, (method, path, media)
    schema = content[media]["schema"]
    if media.endswith("json") and schema:
        whole = {**schema, "components": DOCUMENT["components"]}
        Draft202012Validator(whole).validate(answer.json())


def test_every_route_is_described_and_routed(app):
    described = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert described == {(route.method, f"/_api{route.openapi_path}") for route in ROUTES}
    routed = {route.path for route in WebApp(app, WebOptions())._router.routes if isinstance(route, Route)}
    assert routed == {"/", "/static/{name:path}", *(f"/_api{route.path}" for route in ROUTES)}


def test_the_document_is_well_formed():
    assert DOCUMENT["openapi"] == "3.1.0"
    names = [one["operationId"] for methods in DOCUMENT["paths"].values() for one in methods.values()]
    assert len(names) == len(set(names))
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    text = str(DOCUMENT)
    for name in set(re.findall(r"#/components/schemas/(\w+)", text)):
        assert name in DOCUMENT["components"]["schemas"]
    assert "$defs" not in text


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: f"{one.method} {one.path}")
def test_every_route_has_a_summary_and_its_parameters(route):
    assert re.fullmatch(r"[A-Z].*\.", route.summary), route.summary
    told = operation(route.method, f"/_api{route.openapi_path}")
    named = {one["name"] for one in told["parameters"] if one["in"] == "path"}
    assert named == set(re.findall(r"\{(\w+)\}", route.openapi_path))


async def test_answers_are_as_described(jobs, serving):
    web = await serving.admin()
    job_id, doomed = await send(web), await send(web, "burn", {"why": "x"})
    await web.post("/schedules", json={"name": "s", "kind": "export_users", "every": "1h", "input": {"format": "csv"}})
    await web.put("/limits/kind:burn", json={"concurrency": 3})
    async with jobs.running():

        async def over(which):
            return (await web.get(f"/jobs/{which}")).json()["over"]

        await until(lambda: over(job_id))
        await until(lambda: over(doomed))
        [worker] = (await web.get("/workers")).json()["workers"]
        [group] = (await web.get("/failures")).json()["groups"]
        values = {"{id}": doomed, "{kind}": "export_users", "{name}": "s", "{queue}": "exports", "{group}": group["id"]}
        bodies = {
            "dispatch_job": {"args": {"format": "csv"}},
            "bulk": {"action": "cancel", "filter": {"kind": "burn"}},
            "set_limit": {"concurrency": 1},
            "create_schedule": {"name": "t", "kind": "export_users", "every": "1h", "input": {"format": "csv"}},
            "change_schedule": {"every": "2h"},
            "start_session": {"token": await serving.token()},
            "signal_workflow": {"name": "decide"},
            "emit_event": {"name": "paid"},
        }
        seen = set()
        for route in [route for route in ROUTES if route.method != "DELETE"] + [
            route for route in ROUTES if route.method == "DELETE"
        ]:
            path = route.openapi_path.replace("/workers/{id}", f"/workers/{worker['id']}")
            for name, value in values.items():
                path = path.replace(name, "kind:burn" if "/limits/" in path and name == "{name}" else value)
            answer = await web.request(route.method, path, json=bodies.get(route.name, {}) if route.body else None)
            check(answer, route.method, f"/_api{route.openapi_path}")
            seen.add((route.name, answer.status_code < 300))
            foreign = await web.request(route.method, path, headers={"origin": "https://evil.example"})
            assert (foreign.status_code == 403) == route.changes, (route.method, path)
            check(foreign, route.method, f"/_api{route.openapi_path}")
            assert answer.status_code < 500
        failed = {name for name, fine in seen if not fine}
    # The job is not a dead letter any more when it is replayed, is gone when its chain is deleted, and is not a workflow.
    others = {"replay_job", "delete_chain", "complete_chain", "signal_workflow", "resume_workflow", "fork_workflow"}
    assert failed <= others


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
async def test_arbitrary_requests_are_answered_as_described(jobs, serving):
    """The short version of a campaign with schemathesis: no 5xx, no undescribed answer, nothing without a token."""
    server = await serving.serve()
    web, stranger = await server.client(await serving.token()), await server.client()
    requests: list[tuple[Any, str, dict[str, str], Any]] = []
    text = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=20)

    @settings(
        max_examples=int(os.environ.get("FUZZ_EXAMPLES", "150")),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def draw(data):
        from urllib.parse import quote

        route = data.draw(st.sampled_from([one for one in ROUTES if one.name != "stream_events"]))
        path = route.openapi_path
        for name in re.findall(r"\{\w+\}", path):
            value = data.draw(st.one_of(text, st.just(str(uuid4())), st.sampled_from(["export_users", "burn", "kind:burn"])))
            path = path.replace(name, quote(value, safe=""))
        known = [
            one["name"] for one in operation(route.method, f"/_api{route.openapi_path}")["parameters"] if one["in"] == "query"
        ]
        names = st.sampled_from(known) if known else text
        params = data.draw(st.dictionaries(names, st.one_of(text, st.integers().map(str)), max_size=3))
        body = None
        if route.changes:
            fields = list(route.body.model_fields) if route.body else ["x"]
            body = data.draw(st.one_of(JSON, st.dictionaries(st.sampled_from(fields), JSON, max_size=4)))
        requests.append((route, path, params, body))

    draw()
    for route, path, params, body in requests:
        answer = await web.request(route.method, path, params=params, json=body if route.changes else None)
        assert answer.status_code < 500, (route.path, path, params, body, answer.text)
        if path not in (".", "..") and answer.status_code not in (404, 405):
            check(answer, route.method, f"/_api{route.openapi_path}")
        if route.scope is not None:
            refused = await stranger.request(route.method, path, params=params, json=body if route.changes else None)
            assert refused.status_code >= 400


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/stats", {"GET", "HEAD"}),
        ("PATCH", "/schedules", {"GET", "HEAD", "POST"}),
        ("POST", "/limits/queue:mail", {"DELETE", "PUT"}),
        ("HEAD", "/jobs/x/dispatch", {"POST"}),
    ],
)
async def test_a_wrong_method_is_answered_with_the_right_ones(jobs, serving, method, path, allowed):
    answer = await (await serving.admin()).request(method, path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == allowed


def test_every_operation_has_the_statuses_that_any_request_may_get():
    operations = [operation for path in document()["paths"].values() for operation in path.values()]
    assert all({"405", "421", "431"} <= operation["responses"].keys() for operation in operations)


async def test_a_bulk_action_on_jobs_that_postgres_refuses_to_change_is_described(jobs, serving, sql):
    web = await serving.admin()
    ids = [await send(web) for _ in range(2)]
    raising = "begin raise exception 'no' using errcode = 'AU001'; end"
    sql(f"create function tenure.refuse() returns trigger language plpgsql as $$ {raising} $$")
    condition = f"when (old.id = '{ids[0]}')"
    sql(f"create trigger refuse before delete on tenure.jobs for each row {condition} execute function tenure.refuse()")
    try:
        answer = await web.post("/jobs/bulk", json={"action": "cancel", "filter": {"ids": ids}, "dry_run": False})
    finally:
        sql("drop function tenure.refuse cascade")
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:tenure:problem:jobs-refused")
    check(answer, "POST", "/_api/jobs/bulk")
