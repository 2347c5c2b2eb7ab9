"""Every parameter, member of a body and header of every route: what is refused, is refused with the place of the value and a way
out."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote
from uuid import uuid4

import pytest
from pydantic import BaseModel
from starlette.requests import Request

import tenure
from tenure import NotPossible, Tenure, WorkflowContext
from tenure.client import replays
from tenure.model import errors
from tenure.model.states import State
from tenure.store.faults import StatementTimeout
from tenure.web.api_routes import ApiRoute
from tenure.web.heavy_requests import HeavyRequests, Turn
from tenure.web.live import websocket
from tenure.web.problems import Problem, invalid, of_error
from tenure.web.request_parsing import LARGEST_BODY, read_body
from tenure.web.route_table import ROUTES
from tenure.web.security.authentication import Authenticator
from tenure.web.security.rate_limits import too_many
from tests.waiting import until
from tests.web.test_jobs import send, state
from tests.web.test_openapi import check

TEXTS = ["", " ", "\0", "x" * 3000, "-1", "1e400", "9" * 40, "nonsense", "tenure.x", '["x"]', '{"password": "x"}', "[redacted]"]

VALUES: list[Any] = [
    *TEXTS, None, True, -1, 1.5, 10**30, [], {}, [None], [{}], {"most": 0}, {"a": "\0"}, {"password": "x"}, {"a": "[redacted]"},
    "9999-12-31T00:00:00Z", {"why": 1}, {"format": "csv", "rows": "many"}, ["nonsense"], {"kind": "tenure.bulk"},
]  # fmt: skip

PARTNERS = {"every": "body"}
"""Without it, `cron` is missing."""

HEADERS = {"Idempotency-Key": ["", "x" * 200, '""'], "Content-Type": ["text/plain", ""], "Accept": ["image/png"]}

BODIES: dict[str, dict[str, Any]] = {
    "dispatch_job": {"args": {"format": "csv"}},
    "bulk": {"action": "cancel", "filter": {"kind": "burn"}},
    "create_schedule": {"name": "t", "kind": "export_users", "every": "1h", "input": {"format": "csv"}},
    "start_session": {"token": "x"},
    "signal_workflow": {"name": "decide"},
    "emit_event": {"name": "paid"},
    "set_limit": {"concurrency": 1},
}

WAY_OUT = re.compile(
    r"[:;,] (add|ask|cancel|change|check|close|complete|connect|correct|create|declare|delete|filter|find|follow|fork|give|leave"
    r"|list|name|narrow|open|remove|resume|retry|run|send|shorten|start|store|subscribe|try|use|wait|but must|it must|there are"
    r"|did you mean|flatten|but needs|(GET )?/\S+ (lists|has)|`tenure [^`]+` (lists|makes|prints|shows)|or try)\b"
)
"""What the last part of a problem's detail begins with."""

WITH_PLACES = frozenset({400, 406, 413, 415, 422})
"""Statuses of refused values."""

REFUSED = WITH_PLACES | {401, 403, 404, 405, 408, 409, 421, 429, 431, 503}


@pytest.fixture
async def web(jobs: Tenure, serving: Any) -> Any:
    @jobs.workflow
    async def approve(ctx: WorkflowContext) -> None:
        await ctx.wait_for_signal("decide", timeout="1h")

    web = await serving.admin()
    await web.post("/schedules", json={"name": "s", "kind": "export_users", "every": "1h", "input": {"format": "csv"}})
    return web


def members(model: type[BaseModel], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, info in model.model_fields.items():
        yield (*at, name)
        for inner in [info.annotation, *get_args(info.annotation)]:
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from members(inner, (*at, name))


def replaced(body: dict[str, Any], at: tuple[str, ...], value: Any) -> dict[str, Any]:
    name, *rest = at
    inner = body.get(name)
    return {**body, name: replaced(inner if isinstance(inner, dict) else {}, tuple(rest), value) if rest else value}


def path_of(route: ApiRoute, job_id: str) -> str:
    name = "queue:mail" if route.path.startswith("/limits") else "s"
    values = {"id": job_id, "kind": "export_users", "name": name, "queue": "mail", "group": "0"}
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], route.openapi_path)


def places(problem: dict[str, Any], answer: Any) -> set[str]:
    """Where the errors of a problem document are."""
    assert problem.get("errors"), (answer.request.method, answer.request.url, answer.request.content[:200], problem)
    assert WAY_OUT.search(problem["detail"]), problem["detail"]
    assert all(one["message"] for one in problem["errors"])
    return {one["path"] for one in problem["errors"]}


def is_at(place: str, wanted: str) -> bool:
    """Arguments and outputs have paths of their own: `args.format`, `input.format`, `output.format`."""
    if place.partition(".")[0] in ("args", "input", "output"):
        place = f"body.{place}"
    return place == wanted or place.startswith(f"{wanted}.") or wanted.startswith(f"{place}.")


def job_for(route: ApiRoute, sql: Any) -> str:
    """A job that the route can change."""
    if route.name == "replay_job":
        state, position, kind = "dead_letter", -1, "burn"
    elif route.path.startswith("/workflows"):
        state, position, kind = "pending", 1, "approve"
    else:
        state, position, kind = "pending", 1, "export_users"
    job_id = str(uuid4())
    sql(
        "insert into tenure.jobs (id, kind, state, position, chain_id, input) values (%s, %s, %s, %s, %s, '{}')",
        job_id, kind, state, position, job_id,
    )  # fmt: skip
    return job_id


def judged(route: ApiRoute, answer: Any, wanted: str) -> bool:
    """Whether the value was refused. It must not be refused without its place."""
    check(answer, route.method, f"/_api{route.openapi_path}")
    assert answer.status_code < 500, answer.text
    if answer.status_code in REFUSED:
        assert WAY_OUT.search(answer.json()["detail"]), answer.text
    if answer.status_code not in WITH_PLACES:
        return False
    assert any(is_at(place, wanted) for place in places(answer.json(), answer)), (wanted, answer.text)
    return True


QUERIES = [(route, name) for route in ROUTES if route.query is not None for name in route.query.model_fields]


@pytest.mark.parametrize(("route", "name"), QUERIES, ids=lambda one: one if isinstance(one, str) else one.name)
async def test_a_refused_parameter(web, sql, route, name):
    path, refused = path_of(route, job_for(route, sql)), 0
    for text in TEXTS:
        answer = await web.request(route.method, path, params={name: text})
        refused += judged(route, answer, f"query.{name}")
    assert refused


BODY_MEMBERS = [(route, at) for route in ROUTES if route.body is not None for at in members(route.body)]


@pytest.mark.parametrize(("route", "at"), BODY_MEMBERS, ids=lambda one: ".".join(one) if isinstance(one, tuple) else one.name)
async def test_a_refused_member_of_a_body(web, sql, route, at):
    wanted, refused = PARTNERS.get(at[-1], ".".join(["body", *at])), 0
    for value in VALUES:
        path = path_of(route, job_for(route, sql))
        body = replaced(BODIES.get(route.name, {}), at, value)
        answer = await web.request(route.method, path, content=json.dumps(body), headers={"content-type": "application/json"})
        refused += judged(route, answer, wanted)
    assert refused


@pytest.mark.parametrize("route", [route for route in ROUTES if route.changes], ids=lambda one: one.name)
async def test_a_body_of_another_form(web, sql, route):
    for text in ("x", "[]", "null", '{"a": ', '{"nonsense": 1}', '"\\ud800"', "1e999", "[" * 3000):
        answer = await web.request(
            route.method, path_of(route, job_for(route, sql)), content=text, headers={"content-type": "application/json"}
        )
        assert judged(route, answer, "body"), (text, answer.text)


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: f"{one.name}")
async def test_a_parameter_that_does_not_exist(web, sql, route):
    answer = await web.request(route.method, path_of(route, job_for(route, sql)), params={"nonsense": "1"}, json={})
    assert judged(route, answer, "query.nonsense")


HEADED = [
    (route, header)
    for route in ROUTES
    for header in HEADERS
    if header in route.headers or (header == "Content-Type" and route.body is not None)
]


@pytest.mark.parametrize(("route", "header"), HEADED, ids=lambda one: one if isinstance(one, str) else one.name)
async def test_a_refused_header(web, sql, route, header):
    for value in HEADERS[header]:
        body = json.dumps(BODIES.get(route.name, {})) if route.body is not None else None
        answer = await web.request(
            route.method, path_of(route, job_for(route, sql)), content=body or "{}",
            headers={"Content-Type": "application/json", header: value},
        )  # fmt: skip
        assert judged(route, answer, f"header.{header}"), value


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("PUT", "/limits/nonsense", "name"),
        ("PUT", f"/limits/queue:{'x' * 300}", "name"),
        ("DELETE", "/limits/nonsense", "name"),
        ("POST", f"/queues/{'x' * 300}/pause", "queue"),
        ("POST", "/queues/%00/pause", "queue"),
        ("POST", f"/queues/{quote(' ')}/resume", "queue"),
        ("GET", "/schedules/%00", "name"),
        ("GET", "/kinds/%00", "kind"),
        ("GET", "/failures/%00", "group"),
    ],
)
async def test_a_refused_name_in_the_path(web, method, path, name):
    answer = await web.request(method, path, json={"concurrency": 1} if method == "PUT" else None)
    assert (answer.status_code, places(answer.json(), answer)) == (422, {f"path.{name}"})


async def test_an_idempotency_key_that_was_used(web):
    await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}}, headers={"Idempotency-Key": "k"})
    again = await web.post("/jobs/export_users/dispatch", json={"args": {"format": "xml"}}, headers={"Idempotency-Key": "k"})
    assert places(again.json(), again) == {"header.Idempotency-Key"}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("export_users", {"x" * 100_000: 1}),
        ("export_users", {"args": {"x" * 100_000: 1}}),
        ("export_users", {"args": {f"{'ü' * 50}{n}": 1 for n in range(5000)}}),
        ("by_name", {"args": {"counts": {"x" * 100_000: "no number"}}}),
        ("published", {"args": {"x" * 100_000: "no number"}}),
    ],
    ids=["option", "argument", "arguments", "by-name", "published"],
)
async def test_a_refusal_does_not_repeat_a_large_body(jobs: Tenure, serving, sql, kind, body):
    """A name of 0.9 MB was sent back twice, and of many unknown arguments, each one with a sentence."""

    @jobs.job
    async def by_name(counts: dict[str, int]) -> None: ...

    schema = json.dumps({"input": {"additionalProperties": {"type": "integer"}}})
    sql("insert into tenure.kinds (name, app, definition) values ('published', 'other:app', %s::jsonb)", schema)
    answer = await (await serving.admin()).post(
        f"/jobs/{kind}/dispatch",
        content=json.dumps(body, ensure_ascii=False).encode(),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 422
    assert len(answer.content) < 20_000


@pytest.mark.parametrize("length", ["\u00b2", "9" * 5000, "-1", "1e3", ""])
async def test_a_length_of_the_body_that_is_not_a_number(length):
    """uvicorn refuses them; a server of another kind may pass them on."""
    scope = {"type": "http", "method": "POST", "headers": [(b"content-length", length.encode("latin-1"))]}
    with pytest.raises(Problem) as caught:
        await read_body(Request(scope), LARGEST_BODY, Turn(HeavyRequests(), "token 1"))
    assert caught.value.status == 413


FOLDERS = ("client", "flow", "web")
WITH_TEXT = {"Problem", "unauthorized", "invalid_value", "NotPossible", "ScheduleConflict"}


def text_of(node: ast.expr) -> str | None:
    """Of a text in the source, with an x for each value. None: it is none, or a slug."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
    return text if isinstance(node, ast.JoinedStr | ast.Constant) and " " in text else None


def refusals_in_source() -> Iterator[tuple[str, str]]:
    """Where, and the text."""
    source = Path(tenure.__file__).parent
    for path in sorted(path for folder in FOLDERS for path in (source / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WITH_TEXT:
                is_internal = isinstance(node.args[0], ast.Constant) and node.args[0].value == 500
                for text in [text for text in map(text_of, node.args) if text is not None and not is_internal]:
                    yield f"{path.relative_to(source)}:{node.lineno}", text


def test_every_refusal_in_the_source_ends_with_a_way_out():
    """Also those that no request of these tests gets: of rates, outages, states of jobs, and live connections."""
    found = list(refusals_in_source())
    assert len(found) > 60
    found = [(where, text) for where, text in found if not re.search(r"(^x|:) x$", text)]  # their last value is the way out
    assert [(where, text) for where, text in found if not WAY_OUT.search(text)] == []


@pytest.mark.parametrize(
    "error",
    [
        errors.JobNotFound(uuid4()),
        errors.ScheduleNotFound("s"),
        errors.KeyTaken({uuid4(): uuid4()}),
        errors.JobsLocked([uuid4()], 5.0),
        errors.JobsRefused({uuid4(): "no"}, 1),
        errors.StoreUnavailable("no answer"),
        errors.UnknownKind("x", ["xy"]),
        StatementTimeout("canceled"),
        too_many("too many", 3.0),
        *(NotPossible([uuid4()], text) for text in replays._WAY_OUT.values()),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_the_client_has_a_way_out(error):
    problem = of_error(error)
    assert problem is not None
    assert problem.status in REFUSED
    assert WAY_OUT.search(problem.detail), problem.detail


async def refused_live(server: Any, *messages: Any, token: str | None = None) -> str:
    """The detail of the first error."""
    live = await server.live(token)
    for message in messages:
        await live.connection.send(message if isinstance(message, str) else json.dumps(message))
    answer = await live.until(lambda message: message["type"] == "error")
    return str(answer["problem"]["detail"])


@pytest.mark.parametrize(
    "message",
    [
        "x", "[]", {"type": "nonsense"}, {"type": "subscribe"}, {"type": "subscribe", "topics": ["nonsense"]},
        {"type": "subscribe", "topics": ["overview"]}, {"type": "unsubscribe", "topics": [None]},
        {"type": "subscribe", "topics": ["queue:b"]}, {"type": "subscribe", "topics": ["x"] * 1001},
    ],
    ids=str,
)  # fmt: skip
async def test_a_refused_message_of_a_live_connection_is_answered_with_a_way_out(serving, message):
    server, token = await serving.serve(), await serving.token("read", queues=["a"])
    assert WAY_OUT.search(detail := await refused_live(server, message, token=token)), detail


@pytest.mark.parametrize("first", ["x", {"type": "subscribe"}, {"type": "auth"}, {"type": "auth", "token": "tnr_wrong"}], ids=str)
async def test_a_live_connection_without_a_token_is_answered_with_a_way_out(serving, first):
    assert WAY_OUT.search(detail := await refused_live(await serving.serve(), first)), detail


async def test_a_live_connection_that_ends_is_told_a_way_out(serving, monkeypatch):
    monkeypatch.setattr(websocket, "LARGEST_MESSAGE", 100)
    monkeypatch.setattr(websocket, "RECHECK", 0.1)
    server, token = await serving.serve(), await serving.token("read")
    assert WAY_OUT.search(detail := await refused_live(server, "x" * 101, token=token)), detail

    async def invalid(*given: Any) -> bool:
        return False

    monkeypatch.setattr(Authenticator, "still_valid", invalid)
    detail = await refused_live(server, token=token)
    assert detail == "the token is no longer valid: connect again with another one"
    assert WAY_OUT.search(detail)


class CountedList(list[Any]):
    """Counts how often it is walked through."""

    walks = 0

    def __iter__(self) -> Any:
        self.walks += 1
        return super().__iter__()


def test_the_place_of_each_error_in_a_long_list_costs_the_same():
    """Each of up to 50 errors walked through the whole list."""
    given = {"filter": {"state": CountedList(["x"] * 1000)}}
    errors = [{"loc": ("filter", "state", n, "enum"), "type": "enum", "msg": "unknown"} for n in (0, 999, 1000, -1)]
    assert [one["path"] for one in invalid(errors, "body", given).errors] == [
        "body.filter.state.0", "body.filter.state.999", "body.filter.state", "body.filter.state",
    ]  # fmt: skip
    assert given["filter"]["state"].walks == 0


async def test_a_filter_names_each_state_once_at_most(jobs, serving):
    web = await serving.admin()
    body = {"action": "cancel", "filter": {"kind": "burn", "state": ["pending"] * 100_000}}
    refused = await web.post("/jobs/bulk", json=body)
    assert (refused.status_code, [one["path"] for one in refused.json()["errors"]]) == (422, ["body.filter.state"])
    assert (await web.post("/jobs/bulk", json={**body, "filter": {"state": list(State)}})).status_code == 200


@pytest.mark.parametrize("has_code", [True, False])
async def test_an_argument_has_its_path_in_the_member_that_has_the_arguments(jobs, app_without_jobs, serving, has_code):
    """Schedules and replays answered with `args.format`, which is not in their requests."""
    web = await serving.admin(app=jobs if has_code else app_without_jobs)
    schedule = {"name": "nightly", "kind": "export_users", "every": "1h"}
    async with jobs.running():
        await until(lambda: exists(web, "/kinds/burn"))
        doomed = await send(web, "burn", {"why": "x"})
        await until(lambda: state(web, doomed), is_="dead_letter")
    assert (await web.post("/schedules", json={**schedule, "input": {"format": "csv"}})).status_code == 201
    for method, path, body, member, field in (
        ("POST", "/jobs/export_users/dispatch", {}, "args", "format"),
        ("POST", "/schedules", {**schedule, "name": "other"}, "input", "format"),
        ("PATCH", "/schedules/nightly", {}, "input", "format"),
        ("POST", "/schedules/nightly/run", {}, "input", "format"),
        ("POST", f"/jobs/{doomed}/replay", {}, "input", "why"),
    ):
        for value in (5, "[redacted]", "a\0b"):
            refused = await web.request(method, path, json={**body, member: {field: value}})
            found = [one["path"] for one in refused.json()["errors"]]
            assert (refused.status_code, found) == (422, [f"{member}.{field}"]), (path, value)
        refused = await web.request(method, path, json={**body, member: []})
        assert (refused.status_code, [one["path"] for one in refused.json()["errors"]]) == (422, [member]), path
    refused = await web.post(f"/chains/{doomed}/complete", json={"output": {"a": ["[redacted]"]}})
    assert [one["path"] for one in refused.json()["errors"]] == ["output.a.0"]


async def exists(web, path):
    return (await web.get(path)).status_code == 200
