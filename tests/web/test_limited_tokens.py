"""What a token that is limited to queues and kinds can find out about other jobs: nothing, also not by asking around."""

from __future__ import annotations

from tenure import Context, Tenure, WorkflowContext
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
    answer = await web.post("/jobs/charge/dispatch", json={"args": {"payment_id": "p1"}})
    assert (answer.status_code, answer.json()["existed"], answer.json()["job"]) == (200, True, None)


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


async def test_hidden_values_cannot_be_found_out_by_searching_for_them(jobs: Tenure, serving: Serving):
    web = await serving.admin()
    for given in ('{"password": "1234"}', '{"nested": [{"api_key": "x"}]}', '{"credentials": {"user": "ann"}}'):
        refused = await web.get("/jobs", params={"input": given})
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:tenure:problem:redacted")
    bulk = {"action": "cancel", "filter": {"kind": "burn", "input": {"password": "1234"}}}
    assert (await web.post("/jobs/bulk", json=bulk)).json()["type"] == "urn:tenure:problem:redacted"
    assert (await web.get("/jobs", params={"input": '{"password": null, "user": "ann"}'})).status_code == 200
