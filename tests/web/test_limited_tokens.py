"""What a token that is limited to queues and kinds can find out about other jobs: nothing, also not by asking around."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tenure import Context, Continue, Tenure, WorkflowContext
from tenure.client.status import JobStatus
from tenure.flow.chain_status import Chain
from tenure.flow.chains import Chains
from tenure.web.api import workflows
from tenure.web.api_routes import ApiCall
from tests.waiting import until
from tests.web.serving import Serving
from tests.web.test_jobs import send, state


async def test_a_list_shows_nothing_of_other_jobs_and_their_inputs(jobs: Tenure, serving: Serving):
    """Whether a page has a next one told how many jobs of another kind have such an input."""
    server = await serving.serve()
    admin = await server.client(await serving.token())
    for rows in (1, 1, 2):
        await send(admin, args={"format": "csv", "rows": rows})
    mine = await send(admin, "burn", {"why": "x"})
    for limits in ({"kinds": ["burn", "charge"]}, {"queues": ["default"]}):
        web = await server.client(await serving.token("read", **limits))
        for params in ({"input": '{"rows": 1}'}, {"kind": "export_users"}, {"queue": "exports"}):
            assert (await web.get("/jobs", params={**params, "limit": 1})).json() == {"jobs": [], "next": None}
        shown = (await web.get("/jobs", params={"limit": 1})).json()
        assert ([job["id"] for job in shown["jobs"]], shown["next"]) == ([mine], None)


async def test_a_list_of_several_kinds_is_read_in_pages(jobs: Tenure, serving: Serving):
    server = await serving.serve()
    admin = await server.client(await serving.token())
    ids = []
    for n in range(4):
        ids.append(await send(admin, "burn", {"why": str(n)}))
        ids.append(await send(admin, "charge", {"payment_id": str(n)}))
        await send(admin)
    web = await server.client(await serving.token("read", kinds=["burn", "charge"]))
    found, after = [], {}
    while True:
        page = (await web.get("/jobs", params={"limit": 3, **after})).json()
        found += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert found == ids[::-1]


async def test_a_token_for_very_many_kinds_names_one(jobs: Tenure, serving: Serving):
    server = await serving.serve()
    web = await server.client(await serving.token("read", kinds=[f"kind_{n}" for n in range(60)]))
    assert (await web.get("/jobs")).status_code == 403
    assert (await web.get("/jobs", params={"kind": "kind_1"})).json() == {"jobs": [], "next": None}


async def test_a_key_does_not_show_the_job_of_another_queue(jobs: Tenure, serving: Serving):
    server = await serving.serve()
    admin = await server.client(await serving.token())
    await send(admin, "charge", {"payment_id": "p1", "cents": 7}, queue="vip")
    web = await server.client(await serving.token("operate", queues=["default"]))
    for cents in (0, 7):  # neither its id, nor whether it has the same input
        answer = await web.post("/jobs/charge/dispatch", json={"args": {"payment_id": "p1", "cents": cents}})
        assert (answer.status_code, answer.json()["type"]) == (409, "urn:tenure:problem:key-taken")
        assert not re.search("[0-9a-f]{8}-", answer.text)


async def test_a_report_shows_the_children_that_may_be_seen(app: Tenure, serving: Serving):
    @app.job(queue="hidden")
    async def audit() -> None: ...

    @app.job
    async def mail() -> None: ...

    @app.job
    async def order(ctx: Context) -> None:
        await audit.enqueue()
        await mail.enqueue()

    server = await serving.serve()
    admin = await server.client(await serving.token())
    job_id = await send(admin, "order", {})
    async with app.running():
        await until(lambda: state(admin, job_id), is_="completed")

    async def kinds(web):
        return sorted(child["kind"] for child in (await web.get(f"/jobs/{job_id}/report")).json()["children"])

    assert await kinds(admin) == ["audit", "mail"]
    for limits in ({"kinds": ["order", "mail"]}, {"queues": ["default"]}):
        assert await kinds(await server.client(await serving.token("read", **limits))) == ["mail"]


async def test_a_list_of_workflows_is_not_filled_by_those_of_others(app: Tenure, serving: Serving):
    @app.workflow
    async def mine(ctx: WorkflowContext) -> None: ...

    @app.workflow
    async def theirs(ctx: WorkflowContext) -> None: ...

    server = await serving.serve()
    admin = await server.client(await serving.token())
    job_id = await send(admin, "mine", {})
    await send(admin, "theirs", {})
    web = await server.client(await serving.token("read", kinds=["mine"]))
    assert [job["id"] for job in (await web.get("/workflows", params={"limit": 1})).json()["workflows"]] == [job_id]
    assert (await web.get("/workflows", params={"kind": "theirs"})).json() == {"workflows": []}


async def test_bulk_actions_of_others_are_not_in_any_queue(jobs: Tenure, serving: Serving):
    """Their jobs are in the queue `default`, and a token for that queue read their filters and ran them again over all queues."""
    server = await serving.serve()
    admin = await server.client(await serving.token())
    await send(admin)
    body = {"action": "cancel", "filter": {"queue": "exports"}, "dry_run": False}
    job_id = (await admin.post("/jobs/bulk", json=body)).json()["job"]["id"]
    for limits in ({"queues": ["default"]}, {"kinds": ["tenure.bulk"]}):
        token = await serving.token("admin", **limits)
        web, live = await server.client(token), await server.live(token)
        assert (await web.get("/jobs")).json()["jobs"] == []
        for path in ("", "/report", "/explain", "/events"):
            assert (await web.get(f"/jobs/{job_id}{path}")).status_code == 404
        for action in ("retry", "cancel", "replay", "tracker"):
            assert (await web.post(f"/jobs/{job_id}/{action}", json=None if action == "retry" else {})).status_code == 404
        assert (await web.get(f"/chains/{job_id}")).status_code == 404
        assert (await web.post(f"/chains/{job_id}/complete", json={})).status_code == 404
        named = {"action": "cancel", "filter": {"ids": [job_id]}, "dry_run": False}
        assert (await web.post("/jobs/bulk", json=named)).json()["changed"] == 0
        await live.send(type="subscribe", topics=[f"job:{job_id}"])
        assert (await live.receive())["type"] == "gone"
    assert await state(admin, job_id) == "pending"


async def test_a_token_for_the_queue_of_bulk_actions_gets_access_to_its_own(jobs: Tenure, serving: Serving):
    server = await serving.serve()
    web = await server.client(await serving.token("operate", queues=["default"]))
    body = {"action": "cancel", "filter": {"queue": "default"}, "dry_run": False}
    answer = (await web.post("/jobs/bulk", json=body)).json()
    tracking = await server.client(answer["tracker"])
    assert (await tracking.get(f"/jobs/{answer['job']['id']}")).json()["status"] == "pending"


async def test_a_link_that_followed_meanwhile_is_not_completed_by_a_token_that_may_not_see_it(
    app: Tenure, serving: Serving, monkeypatch
):
    @app.job(queue="hidden")
    async def second() -> None: ...

    @app.job
    async def first() -> Continue:
        return Continue(second)

    server = await serving.serve()
    admin = await server.client(await serving.token())
    job_id = await send(admin, "first", {})
    before = await app.chains.get(job_id)
    async with app.running(queues=["default"]):
        await until(lambda: state(admin, job_id), is_="completed")

    async def read_earlier(*_: object) -> Chain:
        return before

    monkeypatch.setattr(Chains, "get", read_earlier)
    web = await server.client(await serving.token("operate", queues=["default"]))
    refused = await web.post(f"/chains/{job_id}/complete", json={"output": "x"})
    assert (refused.status_code, ids_in(refused.text)) == (404, {job_id})
    monkeypatch.undo()
    assert (await app.chains.get(job_id)).state == "pending"
    assert (await admin.post(f"/chains/{job_id}/complete", json={"output": None})).status_code == 200


async def test_a_workflow_of_others_gets_no_signal_through_a_link_of_its_chain(app: Tenure, serving: Serving):
    @app.workflow(queue="hidden")
    async def approve(ctx: WorkflowContext) -> Any:
        return await ctx.wait_for_signal("decide")

    @app.job
    async def first() -> Continue:
        return Continue(approve)

    server = await serving.serve()
    admin = await server.client(await serving.token())
    job_id = await send(admin, "first", {})
    async with app.running(queues=["default"]):
        await until(lambda: state(admin, job_id), is_="completed")
    web = await server.client(await serving.token("operate", queues=["default"]))
    assert (await web.post(f"/workflows/{job_id}/signal", json={"name": "decide"})).status_code == 404
    assert (await admin.post(f"/workflows/{job_id}/signal", json={"name": "decide"})).status_code == 200


def ids_in(text: str) -> set[str]:
    return set(re.findall("[0-9a-f]{8}-[0-9a-f-]{27}", text))


@pytest.fixture
def apply_and_review(app: Tenure) -> Tenure:
    """A workflow that is continued by one that tokens for the queue `default` may not see."""

    @app.workflow(queue="hidden")
    async def review(ctx: WorkflowContext) -> Any:
        return await ctx.wait_for_signal("decide")

    @app.workflow
    async def apply_for(ctx: WorkflowContext) -> Continue[Any]:
        return Continue(review)

    return app


LIMITS = pytest.mark.parametrize("limits", [{"kinds": ["apply_for"]}, {"queues": ["default"]}], ids=["kinds", "queues"])
WORKFLOW_ACTIONS = {"cancel": {"force": True}, "signal": {"name": "decide"}, "resume": {}, "fork": {}}


@LIMITS
async def test_no_action_on_a_workflow_reaches_a_link_of_its_chain_that_the_token_may_not_see(
    apply_and_review: Tenure, serving: Serving, sql, limits
):
    server = await serving.serve()
    admin = await server.client(await serving.token())
    web = await server.client(await serving.token("operate", **limits))
    seen = await send(admin, "apply_for", {})
    async with apply_and_review.running(queues=["default"]):
        await until(lambda: state(admin, seen), is_="completed")
    hidden = str((await apply_and_review.chains.get(seen)).last.id)

    answers = {name: await web.post(f"/workflows/{hidden}/{name}", json=body) for name, body in WORKFLOW_ACTIONS.items()}
    assert {answer.status_code for answer in answers.values()} == {404}
    answers = {name: await web.post(f"/workflows/{seen}/{name}", json=body) for name, body in WORKFLOW_ACTIONS.items()}
    # Resuming and forking are for the job in the path, and the copy is of its own kind and queue.
    assert {name: answer.status_code for name, answer in answers.items()} == {
        "cancel": 404, "signal": 404, "resume": 409, "fork": 201,
    }  # fmt: skip
    assert all(ids_in(answers[name].text) == {seen} for name in ("cancel", "signal", "resume"))
    assert (await web.get(f"/jobs/{answers['fork'].json()['id']}")).json()["kind"] == "apply_for"
    assert (await state(admin, hidden), sql("select name from tenure.events")) == ("pending", [])

    assert (await admin.post(f"/workflows/{seen}/signal", json={"name": "decide"})).status_code == 200
    assert (await admin.post(f"/workflows/{seen}/cancel", json={})).json() == {"id": seen, "canceled": True}
    assert await state(admin, hidden) == "canceled"
    # That it is over by now is not shown either.
    assert [
        (await web.post(f"/workflows/{seen}/{name}", json=WORKFLOW_ACTIONS[name])).status_code for name in ("cancel", "signal")
    ] == [404, 404]


@LIMITS
async def test_a_link_that_follows_during_a_cancellation_is_not_canceled_by_a_token_that_may_not_see_it(
    apply_and_review: Tenure, serving: Serving, monkeypatch, limits
):
    server = await serving.serve()
    admin = await server.client(await serving.token())
    seen = await send(admin, "apply_for", {})
    before = await apply_and_review.client().find(seen)
    async with apply_and_review.running(queues=["default"]):
        await until(lambda: state(admin, seen), is_="completed")

    async def read_earlier(_: ApiCall) -> JobStatus | None:
        return before

    monkeypatch.setattr(workflows, "visible", read_earlier)
    web = await server.client(await serving.token("operate", **limits))
    refused = await web.post(f"/workflows/{seen}/cancel", json={})
    assert (refused.status_code, ids_in(refused.text)) == (404, {seen})
    assert (await apply_and_review.chains.get(seen)).state == "pending"


@LIMITS
async def test_a_link_that_follows_during_a_signal_gets_none_from_a_token_that_may_not_see_it(
    apply_and_review: Tenure, serving: Serving, sql, monkeypatch, limits
):
    server = await serving.serve()
    admin = await server.client(await serving.token())
    seen = await send(admin, "apply_for", {})
    send_signal = workflows.send_signal

    async def sent_after_the_next_link_was_made(*given: Any, **options: Any) -> bool:
        async with apply_and_review.running(queues=["default"]):
            await until(lambda: state(admin, seen), is_="completed")
        return await send_signal(*given, **options)

    monkeypatch.setattr(workflows, "send_signal", sent_after_the_next_link_was_made)
    web = await server.client(await serving.token("operate", **limits))
    refused = await web.post(f"/workflows/{seen}/signal", json={"name": "decide"})
    assert (refused.status_code, ids_in(refused.text)) == (404, {seen})
    assert sql("select name from tenure.events") == []


async def test_chains_and_kinds_of_others_are_not_named(app: Tenure, serving: Serving):
    @app.job(queue="hidden")
    async def audit() -> None: ...

    @app.job
    async def mail() -> None: ...

    server = await serving.serve()
    admin = await server.client(await serving.token())
    blocker = await audit.enqueue()
    waiting = (await mail.using(after=[blocker]).enqueue()).id

    limited = [
        await server.client(await serving.token("read", **limits)) for limits in ({"kinds": ["mail"]}, {"queues": ["default"]})
    ]

    async def named(web):
        reasons = (await web.get(f"/jobs/{waiting}/explain")).json()["reasons"]
        return "audit" in str(reasons), {kind["name"] for kind in (await web.get("/kinds")).json()["kinds"]}

    assert await named(admin) == (True, {"audit", "mail"})
    assert [await named(web) for web in limited] == [(False, {"mail"})] * 2

    async def blocker_kind(web):
        [link] = (await web.get(f"/chains/{waiting}")).json()["links"]
        return link["blockers"][0]["kind"]

    await admin.post(f"/chains/{blocker.id}/complete", json={})
    async with app.running(queues=["default"]):
        await until(lambda: blocker_kind(admin), is_="audit")
    assert [await blocker_kind(web) for web in limited] == [None, None]


async def test_hidden_values_cannot_be_found_out_by_searching_for_them(jobs: Tenure, serving: Serving):
    web = await serving.admin()
    for given in ('{"password": "1234"}', '{"nested": [{"api_key": "x"}]}', '{"credentials": {"user": "ann"}}'):
        refused = await web.get("/jobs", params={"input": given})
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:tenure:problem:redacted")
    bulk = {"action": "cancel", "filter": {"kind": "burn", "input": {"password": "1234"}}}
    assert (await web.post("/jobs/bulk", json=bulk)).json()["type"] == "urn:tenure:problem:redacted"
    assert (await web.get("/jobs", params={"input": '{"password": null, "user": "ann"}'})).status_code == 200


HIDDEN_PAIRS = {"env": [{"name": "DB_PASSWORD", "value": "1234"}, ["Authorization", "Bearer zzz"], ["pin_token", 9876]]}
SHOWN_PAIRS = {"env": [{"name": "REGION", "value": "1234"}, ["Accept", "Bearer zzz"], ["port", 9876]], "tags": ["red", "green"]}
GUESSES = [
    {"env": [{"value": "1234"}]}, {"env": [["Bearer zzz"]]}, {"env": [["Bearer zzz"], {"value": "1234"}]}, {"env": [[9876.0]]},
]  # fmt: skip


@pytest.fixture
async def deployed(app: Tenure, serving: Serving, sql) -> tuple[Any, str]:
    """A client, and a job whose pairs are shown between many of which they are hidden."""

    @app.job
    async def deploy(env: list[Any] | None = None, tags: list[Any] | None = None) -> None: ...

    web = await serving.admin()
    await send(web, "deploy", HIDDEN_PAIRS)
    shown = await send(web, "deploy", SHOWN_PAIRS)
    await send(web, "deploy", HIDDEN_PAIRS)
    return web, shown


@pytest.mark.parametrize("guess", GUESSES, ids=json.dumps)
async def test_the_value_of_a_hidden_pair_is_not_found_without_its_name(deployed, guess):
    """PostgreSQL's `@>` ignores what is left out, so that a guess of the value alone found the job."""
    web, shown = deployed
    for limit in (1, 2, 50):  # a next page would show that there are more
        page = (await web.get("/jobs", params={"input": json.dumps(guess), "limit": limit})).json()
        assert ([job["id"] for job in page["jobs"]], page["next"]) == ([shown], None)
    bulk = {"action": "cancel", "filter": {"kind": "deploy", "input": guess}}
    assert (await web.post("/jobs/bulk", json=bulk)).json()["matched"] == 1
    done = (await web.post("/jobs/bulk", json={**bulk, "dry_run": False})).json()
    assert (done["matched"], done["changed"], done["job"]) == (1, 1, None)
    assert await state(web, shown) == "canceled"
    assert len((await web.get("/jobs", params={"state": "pending", "kind": "deploy"})).json()["jobs"]) == 2


async def test_a_filter_by_items_of_lists_is_read_in_pages(deployed):
    web, shown = deployed
    newest = await send(web, "deploy", {"tags": ["green", "red", 1, True, None]})
    for given in ({"tags": ["green"]}, {"tags": ["red", "green"]}, {"tags": []}):
        found, after = [], {}
        while True:
            page = (await web.get("/jobs", params={"input": json.dumps(given), "limit": 1, **after})).json()
            found += [job["id"] for job in page["jobs"]]
            if page["next"] is None:
                break
            after = {"after": page["next"]}
        assert found == [newest, shown]
    for given, matches in ({"tags": [1.0]}, True), ({"tags": ["1"]}, False), ({"tags": ["red", True, None]}, True):
        found = (await web.get("/jobs", params={"input": json.dumps(given)})).json()["jobs"]
        assert [job["id"] for job in found] == [newest] * matches


async def test_a_filter_by_many_items_of_lists_is_refused(deployed):
    web, _ = deployed
    many = {"tags": [{"a": ["x"] * 5}, {"b": ["y"] * 5}]}
    refused = await web.get("/jobs", params={"input": json.dumps(many)})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "query.input")
    refused = await web.post("/jobs/bulk", json={"action": "cancel", "filter": {"input": many}})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "body.filter.input")


async def test_the_key_that_a_bulk_action_looks_for_is_not_found_by_a_list(app: Tenure, serving: Serving):
    web = await serving.admin()
    await app.enqueue("tenure.bulk", {"action": "cancel", "filter": {"key": "1234"}})
    for key in ("1234", "1233"):
        found = await web.get("/jobs", params={"kind": "tenure.bulk", "input": json.dumps({"filter": {"key": key}})})
        assert found.json() == {"jobs": [], "next": None}


@pytest.mark.parametrize("action", ["cancel", "delete"])
async def test_a_bulk_action_does_not_find_out_hidden_keys(app: Tenure, serving: Serving, action):
    """A dry run told whether a job has this key, and the job of a bulk action how many."""

    @app.job
    async def pull(password: str | None = None) -> None: ...

    web = await serving.admin()
    hidden = await send(web, "pull", {"password": "order-7"}, key="order-7", delay="1h")
    for key in ("order-7", "order-8"):
        body = {"action": action, "filter": {"kind": "pull", "key": key}}
        dry, done = [(await web.post("/jobs/bulk", json={**body, "dry_run": dry_run})).json() for dry_run in (True, False)]
        assert (dry["matched"], done["matched"], done["changed"], done["job"]) == (0, 0, 0, None)
    assert await state(web, hidden) == "scheduled"
    plain = await send(web, "pull", {"password": "1234"}, key="order-9", delay="1h")
    body = {"action": action, "filter": {"kind": "pull", "key": "order-9"}}
    assert (await web.post("/jobs/bulk", json=body)).json()["matched"] == 1
    assert (await web.post("/jobs/bulk", json={**body, "dry_run": False})).json()["changed"] == 1
    assert (await web.get(f"/jobs/{plain}")).status_code == (404 if action == "delete" else 200)


async def test_a_bulk_action_that_only_finds_jobs_that_are_hidden_names_the_way_out(app: Tenure, serving: Serving, monkeypatch):
    """Each repetition would find the same ones."""

    @app.job
    async def pull(password: str | None = None) -> None: ...

    monkeypatch.setattr("tenure.web.api.bulk.COUNT_WITHIN", -1.0)
    web = await serving.admin()
    await send(web, "pull", {"password": "order-7"}, key="order-7", delay="1h")
    refused = await web.post("/jobs/bulk", json={"action": "cancel", "filter": {"key": "order-7"}, "dry_run": False})
    [error] = refused.json()["errors"]
    assert (refused.status_code, error["path"]) == (422, "body.filter")
    assert "narrow it by kind, queue or time" in error["message"]


async def test_a_list_by_key_continues_behind_jobs_that_match_nothing_else(app: Tenure, serving: Serving, monkeypatch):
    """A statement examines a number of jobs with the key, even if these match no other filter."""

    @app.job(key_for="live")
    async def daily(n: int) -> None: ...

    monkeypatch.setattr("tenure.store.lists.MOST_EXAMINED", 2)
    web = await serving.admin()
    ids = []
    for n in range(16):
        ids.append(await send(web, "daily", {"n": n}, key="report", queue="rare" if n == 0 else "often"))
        assert (await web.post(f"/jobs/{ids[-1]}/cancel")).status_code == 200
    found, after = [], {}
    while True:
        page = (await web.get("/jobs", params={"key": "report", "queue": "rare", **after})).json()
        found += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert found == ids[:1]


async def test_a_chain_ends_where_its_links_may_no_longer_be_seen(app: Tenure, serving: Serving):
    @app.job(queue="hidden", max_attempts=1)
    async def second() -> None:
        raise ValueError("hidden")

    @app.job
    async def first() -> Continue:
        return Continue(second)

    server = await serving.serve()
    admin = await server.client(await serving.token())
    job_id = await send(admin, "first", {})
    async with app.running():
        await until(lambda: chain_state(admin, job_id), is_="dead_letter")
    [whole] = (await admin.get("/chains", params={"kind": "first"})).json()["chains"]
    assert (whole["last_kind"], whole["links"]) == ("second", 2)
    for limits in ({"kinds": ["first"]}, {"queues": ["default"]}):
        web = await server.client(await serving.token("read", **limits))
        filters = {"kind": "first"} if "kinds" in limits else {"queue": "default"}
        [row] = (await web.get("/chains", params=filters)).json()["chains"]
        assert (row["state"], row["last_kind"], row["last_id"], row["links"]) == ("completed", "first", job_id, 1)
        assert (await web.get("/chains", params={**filters, "state": "dead_letter"})).json()["chains"] == []
        chain = (await web.get(f"/chains/{job_id}")).json()
        assert (chain["state"], chain["error"], len(chain["links"])) == ("completed", None, 1)
        assert chain["finished_at"] == chain["links"][0]["job"]["finished_at"]


async def chain_state(web, job_id):
    return (await web.get(f"/chains/{job_id}")).json()["state"]


async def test_a_viewer_learns_nothing_of_changes_of_a_job_that_it_may_not_see(jobs: Tenure, serving: Serving):
    """Each change sent `gone` again, so it told that the job exists and when something happens to it."""
    server = await serving.serve()
    admin = await server.client(await serving.token())
    watching = await server.live(await serving.token("read"))
    limited = await server.live(await serving.token("read", queues=["default"]))
    hidden = await send(admin)
    for live in (watching, limited):
        await live.send(type="subscribe", topics=[f"job:{hidden}"])
    assert (await limited.receive())["type"] == "gone"
    await watching.until(lambda message: message["type"] == "job")
    async with jobs.running():
        await watching.until(lambda message: message["type"] == "job" and message["job"]["over"])
    seen = await send(admin, "burn", {"why": "x"})
    await limited.send(type="subscribe", topics=[f"job:{seen}"])
    await limited.until(lambda message: message["type"] == "job")
    assert [message["topic"] for message in limited.seen if message["type"] == "gone"] == [f"job:{hidden}"]
    await limited.send(type="subscribe", topics=[f"job:{hidden}"])  # who asks again is answered again
    assert (await limited.until(lambda message: message["type"] == "gone"))["topic"] == f"job:{hidden}"


async def test_failures_of_a_kind_in_several_queues_are_grouped_for_each_token(jobs: Tenure, serving: Serving):
    """The group of all queues was hidden as a whole from tokens that may see one of them."""
    server = await serving.serve()
    admin = await server.client(await serving.token())
    mine = await send(admin, "burn", {"why": "no paper"})
    theirs = [await send(admin, "burn", {"why": "no paper"}, queue="hidden") for _ in range(2)]
    async with jobs.running(queues=["default", "hidden"]):
        for job_id in (mine, *theirs):
            await until(lambda job_id=job_id: state(admin, job_id), is_="dead_letter")
    [whole] = (await admin.get("/failures")).json()["groups"]
    assert (whole["jobs"], whole["queues"]) == (3, ["default", "hidden"])
    web = await server.client(await serving.token("operate", queues=["default"]))
    [group] = (await web.get("/failures")).json()["groups"]
    assert (group["jobs"], group["queues"], sum(group["trend"])) == (1, ["default"], 1)
    detail = (await web.get(f"/failures/{group['id']}")).json()
    assert [job["id"] for job in detail["newest"]] == [mine]
    body = {"action": "cancel", "filter": {"failure": group["id"]}, "dry_run": False}
    assert (await web.post("/jobs/bulk", json=body)).json()["changed"] == 1
    assert [await state(admin, job_id) for job_id in theirs] == ["dead_letter"] * 2


async def test_an_explanation_counts_no_jobs_and_workers_of_others(jobs: Tenure, serving: Serving):
    server = await serving.serve()
    admin = await server.client(await serving.token())
    for n in range(3):
        await send(admin, "charge", {"payment_id": str(n)})
    job_id = await send(admin, "burn", {"why": "x"})
    async with jobs.running(queues=["exports"]):
        await until(lambda: texts(admin, job_id, "no_worker_for_queue"))
        for limits in ({"kinds": ["burn"]}, {"queues": ["default"]}):
            web = await server.client(await serving.token("read", **limits))
            [text] = await texts(web, job_id, "no_worker_for_queue")
            assert not re.search("[0-9]", text)


async def texts(web, job_id, code):
    reasons = (await web.get(f"/jobs/{job_id}/explain")).json()["reasons"]
    return [reason["text"] for reason in reasons if reason["code"] == code]


async def test_an_unknown_kind_is_refused_without_the_names_of_others(jobs: Tenure, app_without_jobs: Tenure, serving: Serving):
    server = await serving.serve(app=app_without_jobs)
    async with jobs.running():
        admin = await server.client(await serving.token())

        async def hint(web):
            return (await web.post("/jobs/export_user/dispatch", json={"args": {}})).json()["detail"]

        await until(lambda: named(hint, admin))
        assert "export_users" not in await hint(await server.client(await serving.token("operate", queues=["default"])))


async def named(hint, web):
    return "export_users" in await hint(web)
