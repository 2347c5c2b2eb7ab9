"""Lists of jobs, one job, reports, and what can be done to jobs."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.waiting import until


async def send(web, kind="export_users", args=None, **options):
    answer = await web.post(f"/jobs/{kind}/dispatch", json={"args": {"format": "csv"} if args is None else args, **options})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


async def state(web, job_id):
    return (await web.get(f"/jobs/{job_id}")).json()["state"]


async def test_a_list_is_filtered_by_all_that_is_given_and_read_in_pages(jobs, serving):
    web = await serving.admin()
    ids = [await send(web, args={"format": "csv", "rows": n}, priority="high" if n % 2 else "low") for n in range(6)]
    await send(web, "burn", {"why": "x"})
    first = (await web.get("/jobs", params={"kind": "export_users", "limit": 4})).json()
    rest = (await web.get("/jobs", params={"kind": "export_users", "limit": 4, "after": first["next"]})).json()
    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == ids[::-1]
    assert rest["next"] is None
    found = await web.get(
        "/jobs", params={"state": "pending,retry", "queue": "exports", "priority": "75", "input": '{"rows": 3}'}
    )
    assert [job["id"] for job in found.json()["jobs"]] == [ids[3]]


@pytest.mark.parametrize(
    "params",
    [
        {"limit": 201},
        {"limit": 0},
        {"state": "done"},
        {"after": "nonsense"},
        {"color": "red"},
        {"parent": "nobody"},
        {"input": "[1]"},
        {"input": "{"},
        {"input": "[" * 100},
        {"enqueued_after": "2026-01-01T00:00:00"},
        {"queue": "a\0b"},
        {"priority": "101"},
        [("kind", "a"), ("kind", "b")],
    ],
)
async def test_wrong_filters_are_refused(jobs, serving, params):
    answer = await (await serving.admin()).get("/jobs", params=params)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


async def test_large_inputs_are_left_out_of_lists_and_live_updates(jobs, serving):
    server, token = await serving.serve(), await serving.token()
    web, live = await server.client(token), await server.live(token)
    text = "".join(str(uuid4()) for _ in range(20_000))
    job_id = await send(web, "burn", {"why": text})
    [listed] = (await web.get("/jobs")).json()["jobs"]
    await live.send(type="subscribe", topics=[f"job:{job_id}"])
    followed = (await live.receive())["job"]
    assert [(job["omitted"], job["input"]) for job in (listed, followed)] == [(True, None)] * 2
    whole = (await web.get(f"/jobs/{job_id}")).json()
    assert (whole["omitted"], whole["input"]) == (False, {"why": text})


@pytest.mark.parametrize("job_id", ["00000000-0000-7000-8000-000000000000", "nonsense", "a%00b"])
async def test_a_job_that_does_not_exist(jobs, serving, job_id):
    web = await serving.admin()
    for path in ("", "/report", "/explain", "/events"):
        assert (await web.get(f"/jobs/{job_id}{path}")).status_code == 404
    for action in ("cancel", "retry", "replay", "tracker"):
        assert (await web.post(f"/jobs/{job_id}/{action}")).status_code == 404
    assert (await web.delete(f"/jobs/{job_id}")).status_code == 404


async def test_a_failed_job_has_the_fields_that_the_seeds_page_shows(jobs, serving):
    web = await serving.admin()
    job_id = await send(web, "burn", {"why": "too hot"})
    async with jobs.running():
        await until(lambda: state(web, job_id), is_="dead_letter")
    job = (await web.get(f"/jobs/{job_id}")).json()
    assert (job["status"], job["failed"], job["over"], job["last_error"]) == ("dead_letter", True, True, "too hot")
    assert (job["error_type"], job["attempts"], job["job_type"]) == ("ValueError", 1, "burn")
    assert "Traceback" in job["error"]
    assert job["failed_at"] is not None


async def test_a_report_as_json_html_and_text(jobs, serving):
    web = await serving.admin()
    job_id = await send(web)
    as_json = await web.get(f"/jobs/{job_id}/report")
    assert as_json.json()["job"]["id"] == job_id
    as_html = await web.get(f"/jobs/{job_id}/report", headers={"accept": "text/html,*/*;q=0.8"})
    assert as_html.headers["content-type"].startswith("text/html")
    assert "sandbox" in as_html.headers["content-security-policy"]
    as_text = await web.get(f"/jobs/{job_id}/report", headers={"accept": "text/plain"})
    assert job_id in as_text.text
    assert (await web.get(f"/jobs/{job_id}/report", headers={"accept": "image/png"})).status_code == 406


async def test_an_explanation(jobs, serving):
    web = await serving.admin()
    found = (await web.get(f"/jobs/{await send(web)}/explain")).json()
    assert (found["running"], [reason["code"] for reason in found["reasons"]]) == (False, ["no_worker"])


async def test_cancel_retry_replay_and_delete(jobs, serving, sql):
    web = await serving.admin()
    job_id = await send(web, "burn", {"why": "x"}, delay="1h")
    assert (await web.post(f"/jobs/{job_id}/retry")).json() == {"id": job_id}
    assert await state(web, job_id) == "pending"
    async with jobs.running():
        await until(lambda: state(web, job_id), is_="dead_letter")
    refused = await web.post(f"/jobs/{job_id}/replay", json={"input": {"why": 1}})
    assert refused.status_code == 422
    assert (await web.post(f"/jobs/{job_id}/replay", json={"input": {"why": "y"}, "priority": "low"})).json() == {"id": job_id}
    again = (await web.get(f"/jobs/{job_id}")).json()
    assert (again["state"], again["input"], again["priority"]) == ("pending", {"why": "y"}, 25)
    assert (await web.post(f"/jobs/{job_id}/replay")).status_code == 409
    assert (await web.post(f"/jobs/{job_id}/cancel", json={"reason": "enough"})).json() == {"id": job_id, "canceled": True}
    assert (await web.post(f"/jobs/{job_id}/cancel")).json()["canceled"] is False
    canceled = (await web.get(f"/jobs/{job_id}")).json()
    assert (canceled["state"], canceled["last_error"]) == ("canceled", "canceled by tests: enough")
    assert (await web.delete(f"/jobs/{job_id}")).json()["deleted"] is True
    assert (await web.get(f"/jobs/{job_id}")).status_code == 404


async def test_a_replay_is_checked_by_the_published_schema(jobs, strangers, serving):
    web = await serving.admin(app=strangers)
    async with jobs.running():
        job_id = await send(web, "burn", {"why": "x"})
        await until(lambda: state(web, job_id), is_="dead_letter")
        refused = await web.post(f"/jobs/{job_id}/replay", json={"input": {"why": 1}})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "args.why")


async def test_bulk_actions_count_first_and_change_only_what_matches(jobs, serving, states):
    web = await serving.admin()
    for n in range(5):
        await send(web, args={"format": "csv", "rows": n})
    await send(web, "burn", {"why": "x"})
    body = {"action": "cancel", "filter": {"kind": "export_users"}}
    counted = (await web.post("/jobs/bulk", json=body)).json()
    assert (counted["dry_run"], counted["matched"], counted["changed"], counted["more"]) == (True, 5, 0, False)
    assert states() == {"pending": 6}
    part = (await web.post("/jobs/bulk", json={**body, "dry_run": False, "limit": 2})).json()
    assert (part["matched"], part["changed"], part["more"]) == (2, 2, True)
    rest = (await web.post("/jobs/bulk", json={**body, "dry_run": False, "reason": "enough"})).json()
    assert (rest["changed"], rest["more"]) == (3, False)
    assert states() == {"pending": 1, "canceled": 5}
    deleted = await web.post("/jobs/bulk", json={"action": "delete", "filter": {"state": ["canceled"]}, "dry_run": False})
    assert deleted.json()["changed"] == 5
    assert states() == {"pending": 1}


async def test_bulk_replay_and_retry(jobs, serving, states):
    web = await serving.admin()
    ids = [await send(web, "burn", {"why": "x"}) for _ in range(3)]
    async with jobs.running():
        await until(states, is_={"dead_letter": 3})
    replayed = await web.post("/jobs/bulk", json={"action": "replay", "filter": {"kind": "burn"}, "dry_run": False})
    assert (replayed.json()["changed"], states()) == (3, {"pending": 3})
    late = await send(web, "burn", {"why": "x"}, delay="1h")
    retried = await web.post("/jobs/bulk", json={"action": "retry", "filter": {"kind": "burn"}, "dry_run": False})
    assert (retried.json()["changed"], await state(web, late), len(ids)) == (1, "pending", 3)


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        ({"action": "cancel", "filter": {}}, "filter-needed"),
        ({"action": "cancel", "filter": {"state": ["completed"]}}, "wrong-state"),
        ({"action": "explode", "filter": {"kind": "burn"}}, "invalid-request"),
        ({"action": "cancel", "filter": {"kind": "burn"}, "limit": 10_001}, "invalid-request"),
    ],
)
async def test_bulk_actions_that_are_refused(jobs, serving, body, slug):
    answer = await (await serving.admin()).post("/jobs/bulk", json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, f"urn:tenure:problem:{slug}")
