"""Chains and workflows over REST and live."""

from __future__ import annotations

from typing import Any

import pytest

from tenure import Context, Continue, Tenure, WorkflowContext
from tenure.client.workflows import Workflows
from tenure.flow.chains import Chains
from tenure.model.errors import StoreUnavailable
from tenure.store.faults import StatementTimeout
from tenure.web.live.flows import FlowReader
from tenure.web.live.topics import LiveTopic, Subject
from tenure.web.security.redaction import Redaction
from tests.waiting import until
from tests.web.serving import Serving


@pytest.fixture
def flows(app: Tenure) -> Tenure:
    @app.job(queue="orders")
    async def ship(order: int) -> dict[str, Any]:
        return {"shipped": order, "password": "hush"}

    @app.job(queue="orders")
    async def reserve(ctx: Context, order: int) -> dict[str, str] | Continue[dict[str, Any]]:
        return Continue(ship, order)

    @app.workflow
    async def approve(ctx: WorkflowContext, order: int) -> str:
        prepared = await ctx.step("prepare", lambda: {"order": order, "token": "hush"})
        decided = await ctx.wait_for_signal("decide")
        paid = await ctx.wait_for("paid", key=order)
        return f"{prepared['order']} {decided} {paid}"

    return app


async def dispatched(web, kind: str, args: dict[str, Any], **options) -> str:
    answer = await web.post(f"/jobs/{kind}/dispatch", json={"args": args, **options})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


async def test_a_chain_is_listed_and_shown_with_its_links(flows: Tenure, serving: Serving):
    web = await serving.admin()
    chain_id = await dispatched(web, "reserve", {"order": 7})
    async with flows.running():

        async def state():
            return (await web.get(f"/chains/{chain_id}")).json()["state"]

        await until(state, is_="completed")
    chain = (await web.get(f"/chains/{chain_id}")).json()
    assert [(link["number"], link["job"]["kind"], link["blockers"]) for link in chain["links"]] == [
        (1, "reserve", []),
        (2, "ship", []),
    ]
    assert (chain["id"], chain["kind"], chain["error"]) == (chain_id, "reserve", None)
    assert chain["output"] == chain["links"][1]["job"]["output"] == {"shipped": 7, "password": "[redacted]"}
    by_link = (await web.get(f"/chains/{chain['links'][1]['job']['id']}")).json()
    assert by_link == chain
    [listed] = (await web.get("/chains", params={"state": "completed"})).json()["chains"]
    assert (listed["id"], listed["links"], listed["last_kind"], listed["state"]) == (chain_id, 2, "ship", "completed")
    assert (await web.get("/chains", params={"state": "failed"})).json()["chains"] == []
    assert (await web.get("/chains", params={"kind": "ship"})).json()["chains"] == []


async def test_a_chain_is_completed_without_a_worker_and_deleted(flows: Tenure, serving: Serving, sql):
    web = await serving.admin()
    chain_id = await dispatched(web, "reserve", {"order": 7})
    waiting = await flows.jobs["ship"].using(after=[chain_id]).enqueue(8)
    refused = await web.delete(f"/chains/{chain_id}")
    assert (refused.status_code, "cascade" in refused.json()["detail"]) == (409, True)
    wrong = await web.post(f"/chains/{chain_id}/complete", json={"output": [1]})
    assert (wrong.status_code, wrong.json()["type"]) == (422, "urn:tenure:problem:invalid-output")
    done = await web.post(f"/chains/{chain_id}/complete", json={"output": {"by": "hand"}})
    assert done.json() == {"id": chain_id, "link": chain_id}
    assert (await web.get(f"/chains/{chain_id}")).json()["output"] == {"by": "hand"}
    assert (await web.post(f"/chains/{chain_id}/complete", json={})).status_code == 409
    assert (await web.delete(f"/chains/{chain_id}", params={"cascade": "true"})).json()["deleted"] >= 1
    assert (await web.get(f"/chains/{chain_id}")).status_code == 404
    entries = (await web.get("/audit")).json()["entries"]
    assert {(entry["action"], entry["actor"]) for entry in entries} >= {("complete_chain", "tests"), ("delete_chain", "tests")}
    assert waiting.id is not None


async def test_the_output_of_a_chain_is_checked_by_the_published_schema(
    flows: Tenure, app_without_jobs: Tenure, serving: Serving
):
    web = await serving.admin(app=app_without_jobs)
    async with flows.running():
        chain_id = await dispatched(web, "reserve", {"order": 7}, delay="1h")
    wrong = await web.post(f"/chains/{chain_id}/complete", json={"output": [1]})
    assert (wrong.status_code, wrong.json()["type"]) == (422, "urn:tenure:problem:invalid-output")
    assert wrong.json()["errors"][0]["path"] == "output"
    assert (await web.get(f"/jobs/{chain_id}")).json()["state"] == "scheduled"
    done = await web.post(f"/chains/{chain_id}/complete", json={"output": {"by": "hand"}})
    assert done.json() == {"id": chain_id, "link": chain_id}


async def test_a_workflow_is_shown_signaled_and_gets_its_event(flows: Tenure, serving: Serving):
    web = await serving.admin()
    job_id = await dispatched(web, "approve", {"order": 7})
    async with flows.running():

        async def names():
            return [(step["name"], step["state"]) for step in (await web.get(f"/workflows/{job_id}")).json()["steps"]]

        async def waits():
            return "open" in [state for _, state in await names()]

        await until(waits)
        shown = (await web.get(f"/workflows/{job_id}")).json()
        assert (shown["steps"][0]["name"], shown["steps"][0]["output"]) == ("prepare", {"order": 7, "token": "[redacted]"})
        assert (shown["job"]["status"], shown["held"]) == ("waiting", None)
        [listed] = (await web.get("/workflows", params={"state": "waiting"})).json()["workflows"]
        assert listed["id"] == job_id
        assert (await web.post(f"/workflows/{job_id}/resume", json={})).status_code == 409
        assert (await web.post(f"/workflows/{job_id}/signal", json={"name": "decide", "payload": "yes"})).status_code == 200
        assert (await web.post("/events", json={"name": "paid", "payload": 3, "key": 7})).json() == {"name": "paid"}

        async def output():
            return (await web.get(f"/jobs/{job_id}")).json()["output"]

        await until(output, is_="7 yes 3")
        forked = await web.post(f"/workflows/{job_id}/fork", json={})
        assert forked.status_code == 201
        copy = forked.json()["id"]
        await until(lambda: web.get(f"/jobs/{copy}"))
        unknown = await web.post(f"/workflows/{job_id}/fork", json={"from_step": "nonsense"})
        assert (unknown.status_code, "nonsense" in unknown.json()["detail"]) == (409, True)


async def test_a_list_of_workflows_has_what_each_waits_for(flows: Tenure, serving: Serving):
    web = await serving.admin()
    job_id = await dispatched(web, "approve", {"order": 7})
    [listed] = (await web.get("/workflows")).json()["workflows"]
    assert (listed["steps"], listed["done"], listed["waits"], listed["held"]) == (0, 0, [], None)
    async with flows.running():

        async def waits():
            [row] = (await web.get("/workflows")).json()["workflows"]
            return [(wait["name"], wait["what"], wait["state"], wait["output"], wait["due_at"]) for wait in row["waits"]]

        await until(waits, is_=[("decide", "event", "open", {"event": "decide", "key": job_id}, None)])
    [listed] = (await web.get("/workflows")).json()["workflows"]
    assert (listed["id"], listed["steps"], listed["done"]) == (job_id, 2, 1)
    kinds = {kind["name"]: kind["workflow"] for kind in (await web.get("/kinds")).json()["kinds"]}
    assert (kinds["approve"], kinds["ship"]) == (True, False)


async def test_a_chain_has_the_jobs_that_wait_for_it(flows: Tenure, serving: Serving):
    server = await serving.serve()
    web = await server.client(await serving.token())
    chain_id = await dispatched(web, "reserve", {"order": 7})
    behind = await flows.jobs["ship"].using(after=[chain_id]).enqueue(8)
    group = await flows.gather([flows.jobs["reserve"].handle(chain_id)])
    expected = {(str(behind.id), "ship", "blocked"), (str(group.id), "tenure.group", "blocked")}
    shown = (await web.get(f"/chains/{chain_id}")).json()["dependants"]
    assert {(one["id"], one["kind"], one["state"]) for one in shown} == expected
    assert (await web.get(f"/chains/{behind.id}")).json()["dependants"] == []
    job = (await web.get(f"/jobs/{behind.id}")).json()
    assert (job["chain_id"], job["next_id"]) == (str(behind.id), None)
    async with flows.running():
        await behind.result("20s")
    shown = (await web.get(f"/chains/{chain_id}")).json()
    assert ("ship", "completed") in {(one["kind"], one["state"]) for one in shown["dependants"]}
    assert (await web.get(f"/jobs/{chain_id}")).json()["next_id"] == shown["links"][1]["job"]["id"]
    limited = await server.client(await serving.token("read", name="first", kinds=["reserve"]))
    assert (await limited.get(f"/chains/{chain_id}")).json()["dependants"] == []


async def test_blocked_and_waiting_jobs_are_counted(flows: Tenure, serving: Serving):
    web = await serving.admin()
    chain_id = await dispatched(web, "reserve", {"order": 7}, delay="1h")
    for order in range(3):
        await flows.jobs["ship"].using(after=[chain_id]).enqueue(order)
    workflow_id = await dispatched(web, "approve", {"order": 7})
    async with flows.running():

        async def state():
            return (await web.get(f"/jobs/{workflow_id}")).json()["state"]

        await until(state, is_="waiting")

        async def counted():
            reply = (await web.get("/stats")).json()
            queues = {queue["name"]: (queue["scheduled"], queue["blocked"], queue["waiting"]) for queue in reply["queues"]}
            return queues.get("orders"), queues.get("default"), reply["totals"]["blocked"], reply["totals"]["waiting"]

        await until(counted, is_=((1, 3, 0), (0, 0, 1), 3, 1))
    metrics = (await web.get("/metrics")).text
    assert 'tenure_jobs{queue="orders",state="blocked"} 3' in metrics
    assert 'tenure_jobs{queue="default",state="waiting"} 1' in metrics


async def test_a_workflow_is_canceled(flows: Tenure, serving: Serving):
    web = await serving.admin()
    job_id = await dispatched(web, "approve", {"order": 7})
    assert (await web.post(f"/workflows/{job_id}/cancel", json={"reason": "too late"})).json() == {"id": job_id, "canceled": True}
    assert (await web.get(f"/workflows/{job_id}")).json()["job"]["status"] == "canceled"


async def test_limited_tokens_see_their_links_only(flows: Tenure, serving: Serving):
    server = await serving.serve()
    admin = await server.client(await serving.token())
    chain_id = await dispatched(admin, "reserve", {"order": 7})
    async with flows.running():

        async def state():
            return (await admin.get(f"/chains/{chain_id}")).json()["state"]

        await until(state, is_="completed")
    first = await server.client(await serving.token("operate", name="first", kinds=["reserve"]))
    shown = (await first.get(f"/chains/{chain_id}")).json()
    assert ([link["job"]["kind"] for link in shown["links"]], shown["output"]) == (["reserve"], None)
    assert (await first.get("/chains")).status_code == 403
    assert len((await first.get("/chains", params={"kind": "reserve"})).json()["chains"]) == 1
    stranger = await server.client(await serving.token("admin", name="stranger", kinds=["other"]))
    assert (await stranger.get(f"/chains/{chain_id}")).status_code == 404
    assert (await stranger.post(f"/chains/{chain_id}/complete", json={})).status_code == 404
    assert (await stranger.delete(f"/chains/{chain_id}")).status_code == 403
    assert (await stranger.get(f"/workflows/{chain_id}")).status_code == 404
    assert (await stranger.post("/events", json={"name": "paid"})).status_code == 403


@pytest.mark.parametrize("path", ["/chains/nonsense", "/workflows/nonsense", "/chains/01890000-0000-7000-8000-000000000000"])
async def test_what_does_not_exist(flows, serving, path):
    web = await serving.admin()
    assert (await web.get(path)).status_code == 404


@pytest.mark.parametrize("has_code", [True, False])
async def test_a_workflow_is_moved_to_versions_that_its_workers_can_have(app, app_without_jobs, serving, has_code):
    @app.workflow(version="1")
    async def order(ctx: WorkflowContext) -> None: ...

    @app.workflow
    async def plain(ctx: WorkflowContext) -> None: ...

    web = await serving.admin(app=app if has_code else app_without_jobs)
    async with app.running():
        ids = {kind: await dispatched(web, kind, {}, queue="idle") for kind in ("order", "plain")}

    async def resumed(kind: str, version: str) -> tuple[int, str]:
        answer = await web.post(f"/workflows/{ids[kind]}/resume", json={"version": version})
        return answer.status_code, answer.json().get("type", "").rpartition(":")[2]

    assert await resumed("order", "") == (422, "invalid-request")
    for wrong in (" ", "x" * 5000):
        assert await resumed("order", wrong) == (422, "invalid-value")
    assert await resumed("plain", "2") == (409, "not-possible")
    assert [(await web.get(f"/jobs/{one}")).json()["capability"] for one in ids.values()] == ["order@1", None]
    assert await resumed("order", "2") == (200, "")  # its worker may be started later
    assert (await web.get(f"/jobs/{ids['order']}")).json()["capability"] == "order@2"


@pytest.mark.parametrize("has_code", [True, False])
async def test_only_workflows_receive_signals_by_any_link_of_their_chain(app, app_without_jobs, serving, has_code):
    @app.workflow
    async def approve(ctx: WorkflowContext) -> object:
        return await ctx.wait_for_signal("decide")

    @app.job
    async def ask() -> Continue[object]:
        return Continue(approve)

    @app.job
    async def plain() -> None: ...

    web = await serving.admin(app=app if has_code else app_without_jobs)
    async with app.running():
        other, chain = await dispatched(web, "plain", {}, queue="idle"), await dispatched(web, "ask", {})
        refused = await web.post(f"/workflows/{other}/signal", json={"name": "decide"})
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:tenure:problem:not-possible")

        async def links():
            return len((await web.get(f"/chains/{chain}")).json()["links"])

        await until(links, is_=2)
        assert (await web.post(f"/workflows/{chain}/signal", json={"name": "decide", "payload": 1})).status_code == 200

        async def output():
            return (await web.get(f"/chains/{chain}")).json()["output"]

        await until(output, is_=1)


async def test_a_job_that_is_not_a_workflow_cannot_be_forked(flows, serving):
    web = await serving.admin()
    job_id = await dispatched(web, "ship", {"order": 1})
    assert (await web.post(f"/workflows/{job_id}/fork", json={})).status_code == 409


async def test_a_chain_and_a_workflow_are_followed(flows: Tenure, serving: Serving):
    server, token = await serving.serve(), await serving.token()
    web, live = await server.client(token), await server.live(token)
    chain_id, workflow_id = await dispatched(web, "reserve", {"order": 7}), await dispatched(web, "approve", {"order": 7})
    await live.send(type="subscribe", topics=[f"chain:{chain_id}", f"workflow:{workflow_id}"])
    seen = [await live.receive(), await live.receive()]
    assert {message["type"] for message in seen} == {"chain", "workflow"}
    [chain] = [message["chain"] for message in seen if message["type"] == "chain"]
    assert (chain["id"], chain["state"], len(chain["links"])) == (chain_id, "pending", 1)
    async with flows.running():
        message = await live.until(lambda one: one["type"] == "chain" and one["chain"]["state"] == "completed")
        assert [link["job"]["kind"] for link in message["chain"]["links"]] == ["reserve", "ship"]
        assert message["chain"]["output"] == {"shipped": 7, "password": "[redacted]"}
        waiting = await live.until(lambda one: one["type"] == "workflow" and one["workflow"]["job"]["status"] == "waiting")
        assert waiting["workflow"]["steps"][0]["name"] == "prepare"
        await web.post(f"/workflows/{workflow_id}/signal", json={"name": "decide", "payload": "yes"})
        await web.post("/events", json={"name": "paid", "payload": 3, "key": 7})
        done = await live.until(lambda one: one["type"] == "workflow" and one["workflow"]["job"]["over"])
        assert done["workflow"]["job"]["output"] == "7 yes 3"
    again = await server.live(token)
    await again.send(type="subscribe", topics=[f"workflow:{workflow_id}"])
    assert (await again.receive())["workflow"]["job"]["status"] == "completed", "a snapshot comes first"


async def test_what_is_followed_may_not_exist_be_too_large_or_not_be_allowed(flows: Tenure, serving: Serving, monkeypatch):
    server = await serving.serve()
    web, live = await server.client(await serving.token()), await server.live(await serving.token())
    missing = "chain:01890000-0000-7000-8000-000000000000"
    await live.send(type="subscribe", topics=[missing])
    assert (await live.receive()) == {"type": "chain", "topic": missing, "chain": None, "omitted": False}
    monkeypatch.setattr("tenure.web.live.flows.LARGEST_MESSAGE", 100)
    topic = f"chain:{await dispatched(web, 'reserve', {'order': 7})}"
    await live.send(type="subscribe", topics=[topic])
    assert (await live.receive()) == {"type": "chain", "topic": topic, "chain": None, "omitted": True}
    limited = await server.live(await serving.token("read", name="limited", kinds=["reserve"]))
    await limited.send(type="subscribe", topics=[topic])
    refused = await limited.receive()
    assert (refused["type"], refused["problem"]["status"]) == ("error", 403)


async def test_a_change_is_sent_although_postgres_was_away_while_others_were_read(flows: Tenure, monkeypatch):
    """The first chain was noted as sent, and its viewers never saw its end."""
    first, second = [await flows.enqueue("reserve", {"order": n}) for n in range(2)]
    topics = [LiveTopic(Subject.CHAIN, str(handle.id)) for handle in (first, second)]
    chains = Chains(flows._runtime)
    reader = FlowReader(chains, Workflows(flows._runtime), flows._runtime.session().fetch, Redaction())
    assert len(await reader.changed(topics, ())) == 2
    await first.cancel()
    await second.cancel()
    get, away = chains.get, True

    async def failing(job_id):
        if away and job_id == second.id:
            raise StoreUnavailable("away")
        return await get(job_id)

    monkeypatch.setattr(chains, "get", failing)
    with pytest.raises(StoreUnavailable):
        await reader.changed(topics, topics)
    away = False
    assert list(await reader.changed(topics, topics)) == topics
    await flows.close()


async def test_a_chain_that_takes_too_long_to_read_holds_up_no_other_viewer(flows: Tenure, serving: Serving, monkeypatch):
    server, token = await serving.serve(), await serving.token()
    web = await server.client(token)
    slow, fast = [await dispatched(web, "reserve", {"order": n}) for n in range(2)]
    get = Chains.get

    async def too_slow(self, job_id):
        if str(job_id) == slow:
            raise StatementTimeout("too slow")
        return await get(self, job_id)

    monkeypatch.setattr(Chains, "get", too_slow)
    live = await server.live(token)
    await live.send(type="subscribe", topics=[f"chain:{slow}", f"chain:{fast}", "overview"])
    seen = [await live.receive() for _ in range(3)]
    told = {message["topic"]: message.get("omitted") for message in seen}
    assert told == {f"chain:{slow}": True, f"chain:{fast}": False, "overview": None}


async def test_viewers_of_many_chains_share_one_look_up(flows: Tenure, serving: Serving):
    handles = [await flows.enqueue("reserve", {"order": n}) for n in range(10)]
    asked: list[str] = []
    session = flows._runtime.session()

    async def counting(query):
        asked.append(query.name)
        return await session.fetch(query)

    reader = FlowReader(Chains(flows._runtime), Workflows(flows._runtime), counting, Redaction())
    topics = [LiveTopic(Subject.CHAIN, str(handle.id)) for handle in handles]
    assert len(await reader.changed(topics, ())) == 10
    asked.clear()
    assert await reader.changed(topics, topics) == {}
    assert asked == ["chains/find_links", "live/find_versions"]
    await handles[3].cancel()
    assert list(await reader.changed(topics, topics)) == [topics[3]]
