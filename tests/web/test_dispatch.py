"""Enqueueing over HTTP, with options, keys and checks."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Literal

import pytest

from tenure import StoreUnavailable, Tenure
from tenure.web.api.dispatch import DispatchBody
from tenure.web.security.principal import Principal, Scope
from tests.waiting import until


async def test_the_seeds_request_enqueues_a_job_that_runs(jobs, serving):
    web = await serving.admin()
    answer = await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}})
    assert answer.status_code == 202, answer.text
    sent = answer.json()
    assert sent["job"]["status"] == sent["job"]["state"] == "pending"
    assert (sent["job"]["progress_percent"], sent["job"]["last_error"]) == (0, None)
    async with jobs.running():
        done = await until(lambda: over(web, sent["id"]))
    assert (done["status"], done["output"], done["progress_percent"]) == ("completed", {"csv": 10}, 50)
    assert done["enqueued_by"] == "tests"
    assert (await web.get(answer.headers["location"].replace("../", "/jobs/"))).json()["id"] == sent["id"]


async def over(web, job_id):
    job = (await web.get(f"/jobs/{job_id}")).json()
    return job if job["over"] else None


async def test_the_options_of_a_call(jobs, serving):
    web = await serving.admin()
    options = {"priority": "high", "delay": "5m", "queue": "slow", "capability": "gpu", "max_attempts": 7, "timeout": "30s"}
    sent = (await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}, **options, "meta": {"a": 1}})).json()
    job = (await web.get(f"/jobs/{sent['id']}")).json()
    for shown in (sent["job"], job):
        assert (shown["priority"], shown["queue"], shown["capability"]) == (75, "slow", "gpu")
        assert (shown["max_attempts"], shown["timeout"], shown["state"], shown["meta"]) == (7, 30.0, "scheduled", {"a": 1})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"args": {"format": "csv", "rows": "5"}},
        {"queue": "slow", "priority": "high", "capability": "gpu", "max_attempts": 7, "timeout": "30s", "meta": {"a": [1]}},
        {"key": "k", "key_for": "1h"},
        {"delay": 60},
        {"delay": 0},
        {"run_at": "2020-01-01T00:00:00Z"},
        {"run_at": "2100-01-01T00:00:00+02:00"},
        {"run_at": "2100-01-01T00:00:00Z", "meta": {"a": 1}},
    ],
    ids=str,
)
@pytest.mark.parametrize("hook", ["no hook", "authorize", "around_enqueue"])
async def test_the_job_in_the_answer_is_the_stored_one(jobs, serving, options, hook):
    async def authorize(request):
        return Principal(name="ann", scope=Scope.ADMIN, auth={"user": "ann"})

    if hook == "around_enqueue":

        @jobs.around_enqueue
        @contextmanager
        def traced(calls):
            yield [call.with_meta(trace="t1") for call in calls]

    web = await (await serving.serve(authorize=authorize)).client() if hook == "authorize" else await serving.admin()
    answer = await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}, **options})
    assert answer.status_code == 202, answer.text
    job = answer.json()["job"]
    stored = (await web.get(f"/jobs/{job['id']}")).json()
    assert stored["auth"] == ({"user": "ann"} if hook == "authorize" else None)
    if (
        hook != "around_enqueue" and not options.get("delay") and "run_at" not in options
    ):  # not read back: by the clock of this process
        for name in ("created_at", "enqueued_at"):
            apart = datetime.fromisoformat(job.pop(name)) - datetime.fromisoformat(stored.pop(name))
            assert abs(apart.total_seconds()) < 60
    assert job == stored


async def test_a_job_that_expires_is_shown_as_it_is_stored(jobs, serving):
    @jobs.job(expires="1h")
    async def perishable() -> None: ...

    web = await serving.admin()
    job = (await web.post("/jobs/perishable/dispatch", json={})).json()["job"]
    assert job["expires_at"] is not None
    assert job == (await web.get(f"/jobs/{job['id']}")).json()


async def test_a_job_that_cannot_be_read_back_is_accepted(jobs, serving, sql, monkeypatch):
    async def away(client, job_id):
        raise StoreUnavailable("away")

    web = await serving.admin()
    monkeypatch.setattr("tenure.client.client.Client.find", away)
    answer = await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}, "delay": 60})
    assert (answer.status_code, answer.json()["job"]) == (202, None)
    assert sql("select count(*) from tenure.jobs where id = %s", answer.json()["id"]) == [(1,)]


async def test_a_wrong_argument_is_refused_with_its_path(jobs, serving):
    web = await serving.admin()
    answer = await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv", "rows": "many"}})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == "urn:tenure:problem:invalid-input"
    assert [one["path"] for one in problem["errors"]] == ["args.rows"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"args": []}, "args"),
        ({"arguments": {}}, "body.arguments"),
        ({"args": {"format": "csv"}, "run_at": "2030-01-01T00:00:00"}, "body.run_at"),
    ],
)
async def test_a_wrong_body_is_refused_with_its_path(jobs, serving, body, path):
    answer = await (await serving.admin()).post("/jobs/export_users/dispatch", json=body)
    assert (answer.status_code, [one["path"] for one in answer.json()["errors"]]) == (422, [path])


@pytest.mark.parametrize(
    "options", [{"delay": "5x"}, {"priority": "urgent"}, {"max_attempts": 0}, {"delay": 1, "run_at": "2030-01-01T00:00:00Z"}]
)
async def test_wrong_options_are_refused(jobs, serving, options):
    answer = await (await serving.admin()).post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}, **options})
    assert answer.status_code == 422


async def test_a_key_finds_the_earlier_job(jobs, serving):
    web = await serving.admin()
    first = await web.post("/jobs/charge/dispatch", json={"args": {"payment_id": "p1"}})
    second = await web.post("/jobs/charge/dispatch", json={"args": {"payment_id": "p1"}})
    other_input = await web.post("/jobs/charge/dispatch", json={"args": {"payment_id": "p1", "cents": 5}})
    assert [answer.status_code for answer in (first, second, other_input)] == [202, 200, 200]
    assert second.json()["id"] == first.json()["id"] == other_input.json()["id"]
    assert (second.json()["existed"], second.json()["same_input"], other_input.json()["same_input"]) == (True, True, False)


@pytest.mark.parametrize("with_code", [True, False])
async def test_a_key_does_not_confirm_a_guess_of_a_hidden_value(app, app_without_jobs, serving, with_code):
    """Whether the input is the same told whether the password was right, one guess per request."""

    @app.job
    async def login(user: str, password: str | None = None, env: list | None = None) -> None: ...

    web = await serving.admin(app=app if with_code else app_without_jobs)
    async with app.running():
        await until(lambda: exists(web, "/kinds/login"))

    async def same_input(key, **args):
        answer = (await web.post("/jobs/login/dispatch", json={"key": key, "args": {"user": "ann", **args}})).json()
        return answer["existed"], answer["same_input"]

    assert await same_input("a", password="1234") == (False, True)
    for guess in ("1234", "1235"):
        assert await same_input("a", password=guess) == (True, None)
    assert await same_input("b", env=[{"name": "PIN_TOKEN", "value": 1}]) == (False, True)
    assert [await same_input("b", env=[{"name": "PIN_TOKEN", "value": n}]) for n in (1, 2)] == [(True, None)] * 2
    assert await same_input("a", env=[]) == (True, False)


async def exists(web, path):
    return (await web.get(path)).status_code == 200


async def test_an_idempotency_key_makes_repeated_requests_harmless(jobs, serving, states):
    web = await serving.admin()
    send = lambda args: web.post("/jobs/export_users/dispatch", json={"args": args}, headers={"Idempotency-Key": "r-1"})  # noqa: E731
    answers = await asyncio.gather(*[send({"format": "csv"}) for _ in range(10)])
    assert sorted(answer.status_code for answer in answers) == [200] * 9 + [202]
    assert states() == {"pending": 1}
    refused = await send({"format": "xml"})
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:tenure:problem:idempotency-key-reused")


async def test_an_idempotency_key_compares_the_arguments_and_counts_for_its_kind(jobs, serving):
    web = await serving.admin()

    async def sent(kind, args, **options):
        return await web.post(f"/jobs/{kind}/dispatch", json={"args": args, **options}, headers={"Idempotency-Key": "r-1"})

    first = await sent("export_users", {"format": "csv"})
    for options in ({"queue": "other"}, {"priority": 1}, {"delay": 60}):
        again = await sent("export_users", {"format": "csv"}, **options)
        job = again.json()["job"]
        assert (again.status_code, job["id"]) == (200, first.json()["id"])
        assert (job["queue"], job["priority"], job["state"]) == ("exports", 50, "pending")
    assert (await sent("burn", {"why": "x"})).status_code == 202


async def test_an_idempotency_key_belongs_to_its_sender_and_never_replaces_the_key_of_a_kind(jobs, serving, states):
    server = await serving.serve()
    ann, bob, other_ann = [await server.client(await serving.token(name=name)) for name in ("ann", "bob", "ann")]
    headers = {"Idempotency-Key": "r-1"}
    for web in (ann, bob, other_ann):
        assert (
            await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}}, headers=headers)
        ).status_code == 202
    for key in ("r-2", "r-3"):
        await ann.post("/jobs/charge/dispatch", json={"args": {"payment_id": "p1"}}, headers={"Idempotency-Key": key})
    assert states() == {"pending": 4}


@pytest.mark.parametrize(
    "options",
    [
        {"priority": 101},
        {"priority": "urgent"},
        {"delay": -5},
        {"delay": "soon"},
        {"max_attempts": 0},
        {"key": ""},
        {"key": "k", "key_for": "a while"},
        {"queue": ""},
        {"capability": "x" * 5000},
        {"timeout": "x"},
        {"delay": 5, "run_at": "2030-01-01T00:00:00Z"},
        {"run_at": "9999-01-01T00:00:00Z"},
    ],
    ids=str,
)
async def test_a_wrong_option_is_refused_with_its_path(jobs, app_without_jobs, serving, options):
    async with jobs.running():
        for app in (jobs, app_without_jobs):
            web = await serving.admin(app=app)
            answer = await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}, **options})
            assert answer.status_code == 422
            [error] = answer.json()["errors"]
            assert error["path"] == f"body.{list(options)[-1]}"
            assert error["message"] in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"args": {"format": "a\0b"}}, "args.format"),
        ({"args": {"format": "csv", "rows": [1, {"x": "\ud800"}]}}, "args.rows.1.x"),
        ({"args": {"format": "csv"}, "queue": "a\0"}, "body.queue"),
        ({"args": {"format": "csv"}, "meta": {"a\0": 1}}, "body"),
    ],
)
async def test_text_that_cannot_be_stored_is_refused_with_its_path(jobs, serving, body, path):
    answer = await (await serving.admin()).post(
        "/jobs/export_users/dispatch", content=json.dumps(body), headers={"content-type": "application/json"}
    )
    assert (answer.status_code, [one["path"] for one in answer.json()["errors"]]) == (422, [path])


@pytest.mark.parametrize(
    "options",
    [{"priority": True}, {"priority": 1.5}, {"delay": True}, {"run_at": 5}, {"max_attempts": "3"}, {"timeout": False}],
    ids=str,
)
async def test_a_value_of_another_type_is_refused(jobs, serving, options):
    """As the OpenAPI document has it: nothing is converted."""
    web = await serving.admin()
    answer = await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}, **options})
    assert answer.status_code == 422, answer.text
    assert {".".join(one["path"].split(".")[:2]) for one in answer.json()["errors"]} == {f"body.{next(iter(options))}"}


async def test_a_process_without_the_handlers_checks_by_what_workers_have_published(jobs, app_without_jobs, serving):
    async with jobs.running():
        web = await serving.admin(app=app_without_jobs)
        sent = await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}})
        assert sent.status_code == 202, sent.text
        assert sent.json()["job"]["queue"] == "exports"
        assert (await until(lambda: over(web, sent.json()["id"])))["output"] == {"csv": 10}
        refused = await web.post("/jobs/export_users/dispatch", json={"args": {"rows": "many"}})
    assert refused.status_code == 422
    assert {one["path"] for one in refused.json()["errors"]} == {"args.format", "args.rows"}


@pytest.mark.parametrize(
    "case",
    [
        ("export_users", {}, {"args.format": "a required argument is missing"}),
        ("export_users", {"format": "csv", "x: y": 1, "z": 2}, {"args.x: y": "", "args.z": ""}),
        ("export_users", {"format": "csv", "rows": "many"}, {"args.rows": ""}),
        ("deliver", {"parcel": {"parts": [1, "x"]}}, {"args.parcel.parts.1": ""}),
        ("deliver", {"parts": [], "left": 1}, {"args.left": ""}),
        ("deliver", {"parts": [], "sizes": [1, "x"]}, {"args.sizes.1": ""}),
        ("deliver", {"parts": [], "inner": {"left": 1}}, {"args.inner.parts": "", "args.inner.left": ""}),
    ],
)
async def test_each_wrong_argument_has_its_path_with_and_without_the_handlers(jobs, app_without_jobs, serving, case):
    kind, args, expected = case
    from pydantic import BaseModel, ConfigDict

    class Parcel(BaseModel):
        model_config = ConfigDict(extra="forbid")
        parts: list[int]
        sizes: list[int] | None = None
        inner: Parcel | None = None

    @jobs.job
    async def deliver(parcel: Parcel) -> None: ...

    async with jobs.running():
        for app in (jobs, app_without_jobs):
            answer = await (await serving.admin(app=app)).post(f"/jobs/{kind}/dispatch", json={"args": args})
            assert answer.status_code == 422
            errors = {one["path"]: one["message"] for one in answer.json()["errors"]}
            assert errors.keys() == expected.keys()
            assert all(message.startswith(expected[path]) for path, message in errors.items())


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"rows": "x"}, {"args.rows"}),
        ({"rows": [1, "x"]}, {"args.rows", "args.rows.1"}),
        ({"rows": 1, "pet": {"kind": "cat", "lives": "x"}}, {"args.pet.lives"}),
        ({"rows": 1, "pet": {"kind": "cat"}}, {"args.pet.lives"}),
        ({"rows": 1, "pet": {"kind": "cow"}}, {"args.pet"}),
        ({"rows": 1, "pair": [1]}, {"args.pair.1"}),
        ({"rows": 1, "counts": {"a": "x"}}, {"args.counts.a"}),
    ],
)
async def test_a_path_has_no_names_of_alternative_types(jobs, serving, args, expected):
    from pydantic import BaseModel, Field

    class Cat(BaseModel):
        kind: Literal["cat"]
        lives: int

    class Dog(BaseModel):
        kind: Literal["dog"]

    @jobs.job
    async def visit(
        rows: int | list[int],
        pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None,
        pair: tuple[int, int] = (0, 0),
        counts: dict[str, int] | None = None,
    ) -> None: ...

    web = await serving.admin(app=jobs)
    answer = await web.post("/jobs/visit/dispatch", json={"args": args})
    assert (answer.status_code, {one["path"] for one in answer.json()["errors"]}) == (422, expected)
    schedule = {"name": "visits", "kind": "visit", "every": "1h", "input": args}
    answer = await web.post("/schedules", json=schedule)
    assert {one["path"] for one in answer.json()["errors"]} == {path.replace("args", "input", 1) for path in expected}


async def test_a_kind_that_makes_its_own_keys_needs_one_from_a_process_without_its_code(jobs, app_without_jobs, serving):
    async with jobs.running():
        web = await serving.admin(app=app_without_jobs)
        refused = await web.post("/jobs/charge/dispatch", json={"args": {"payment_id": "p1"}})
        taken = await web.post("/jobs/charge/dispatch", json={"args": {"payment_id": "p1"}, "key": "p1"})
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:tenure:problem:key-needed")
    assert taken.status_code == 202


async def test_a_kind_with_one_model_takes_its_object_or_its_parameter(dsn, app_without_jobs, serving):
    from pydantic import BaseModel

    class Message(BaseModel):
        to: str

    app = Tenure(dsn)

    @app.job
    async def send_email(message: Message) -> str:
        return message.to

    async with app.running():
        web = await serving.admin(app=app_without_jobs)
        for args in ({"to": "ann"}, {"message": {"to": "ann"}}):
            sent = await web.post("/jobs/send_email/dispatch", json={"args": args})
            assert sent.status_code == 202, sent.text
            assert (await until(lambda sent=sent: over(web, sent.json()["id"])))["output"] == "ann"
        refused = await web.post("/jobs/send_email/dispatch", json={"args": {"message": {"from": "ann"}}})
        assert (refused.status_code, [one["path"] for one in refused.json()["errors"]]) == (422, ["args.message.to"])
    await app.close()


async def test_an_unknown_kind_is_refused_with_the_nearest_names(jobs, serving):
    web = await serving.admin()
    answer = await web.post("/jobs/export_user/dispatch", json={"args": {}})
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:tenure:problem:unknown-kind")
    assert "export_users" in answer.json()["detail"]


async def test_a_call_without_options_is_made_like_any_other(jobs, serving, sql):
    """What is the same for all calls of a kind is kept, so the second call is made in another way than the first."""
    web = await serving.admin()
    for args in ({"format": "csv", "rows": 1}, {"format": "é" * 300_000}, {"format": "csv"}):
        with_options = await web.post("/jobs/export_users/dispatch", json={"args": args, "priority": 50})
        plain = await web.post("/jobs/export_users/dispatch", json={"args": args})
        assert (plain.status_code, with_options.status_code) == (202, 202)
        columns = "kind, queue, priority, max_attempts, timeout, capability, input, key, enqueued_by, auth, meta"
        made, other = sql(
            f"select {columns} from tenure.jobs where id in (%s, %s)", plain.json()["id"], with_options.json()["id"]
        )
        assert made == other
    refused = await web.post("/jobs/export_users/dispatch", json={"args": {"format": 7}})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "args.format")


async def test_requests_at_once_with_one_idempotency_key_and_different_arguments_make_one_job(jobs, serving, sql):
    token = await serving.token()
    clients = [await (await serving.serve()).client(token) for _ in range(2)]
    answers = await asyncio.gather(
        *[
            web.post("/jobs/export_users/dispatch", json={"args": {"format": format_}}, headers={"Idempotency-Key": "k1"})
            for format_ in ("csv", "xml", "csv", "xml")
            for web in clients
        ]
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [202] + [422] * 4
    assert len({answer.json()["id"] for answer in answers if answer.status_code < 300}) == 1
    assert sql("select count(*) from tenure.jobs") == [(1,)]


async def test_a_body_that_was_refused_is_not_kept_in_memory(jobs, serving, monkeypatch):
    """The frame of its request referred to the problem, and the problem to the frame. Of large bodies that made hundreds of
    megabytes, until a search for garbage."""
    bodies: list[weakref.ref[Any]] = []
    recorded = DispatchBody.options

    def noting(body: DispatchBody) -> dict[str, Any]:
        bodies.append(weakref.ref(body))
        return recorded(body)

    monkeypatch.setattr(DispatchBody, "options", noting)
    web = await serving.admin()
    gc.disable()
    try:
        assert (await web.post("/jobs/unknown/dispatch", json={"args": {"format": "csv"}})).status_code == 404
        await until(lambda: [body() for body in bodies], is_=[None])
    finally:
        gc.enable()
