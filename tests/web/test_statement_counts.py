"""How many statements a list needs: the number does not grow with the kinds, queues and jobs that there are."""

from __future__ import annotations

import pytest

from tenure import Tenure, WorkflowContext
from tenure.store.link_pool import LinkPool
from tests.waiting import until
from tests.web.serving import Serving
from tests.web.test_jobs import send

# A page of jobs is found in two tables, then read.
MOST = {
    "/jobs": 3,
    "/jobs?state=pending": 2,
    "/jobs?state=failed": 2,
    "/chains": 3,
    "/workflows": 4,
    "/workflows?kind=flow_1": 3,
    "/workflows?state=waiting": 4,
    "/failures": 1,
    "/queues": 1,
    "/workers": 1,
    "/leaders": 1,
    "/stats": 1,
    "/stats/series": 1,
    "/stats/groups": 1,
    "/stats/histogram": 1,
    "/stats/latencies": 1,
    "/stats/fleet": 1,
    "/kinds": 1,
    "/audit": 1,
    # Both are parts of what metrics read.
    "/limits": 5,
    "/schedules": 5,
}


@pytest.fixture
def flows(app: Tenure) -> Tenure:
    for number in range(12):

        @app.workflow(name=f"flow_{number}", queue=f"queue_{number % 4}")
        async def flow(ctx: WorkflowContext) -> None:
            await ctx.wait_for_signal("go")

    return app


@pytest.fixture
def sent(monkeypatch) -> list[str]:
    """The names of statements that the web server has sent."""
    found: list[str] = []
    fetch = LinkPool.fetch

    async def counted(pool, query):
        found.append(query.name)
        return await fetch(pool, query)

    monkeypatch.setattr(LinkPool, "fetch", counted)
    return found


@pytest.mark.slow
async def test_a_list_needs_few_statements(flows: Tenure, serving: Serving, sent: list[str]):
    web = await serving.admin()
    for number in range(12):
        await send(web, f"flow_{number}", {})
    for path, most in MOST.items():
        fresh = await serving.serve()  # which has no answers from before
        web = await fresh.client(await serving.token())
        await web.get("/session")
        sent.clear()
        assert (await web.get(path)).status_code == 200
        assert len(sent) <= most, (path, sent)


async def test_a_workflow_that_waits_behind_thousands_of_other_jobs_is_listed(flows: Tenure, serving: Serving, sql):
    web = await serving.admin()
    async with flows.running(queues=[f"queue_{number}" for number in range(4)]):
        waiting = await send(web, "flow_1", {})

        async def state() -> str:
            return (await web.get(f"/jobs/{waiting}")).json()["state"]

        await until(state, is_="waiting")
    sql(
        "select count(*) from tenure.enqueue("
        "(select json_agg(json_build_object('kind', 'x'))::text from generate_series(1, 6000)))"
    )
    for params in ({}, {"kind": "flow_1"}, {"state": "waiting"}):
        assert [job["id"] for job in (await web.get("/workflows", params=params)).json()["workflows"]] == [waiting]
    assert (await web.get("/workflows", params={"state": "completed"})).json()["workflows"] == []
