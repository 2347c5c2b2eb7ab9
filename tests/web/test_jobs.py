"""Lists of jobs, one job, reports, and what can be done to jobs."""

from __future__ import annotations

import asyncio
from datetime import datetime
from uuid import uuid4

import psycopg
import pytest
from starlette.requests import Request

from tenure.client.bulk import BulkAction
from tenure.model.ids import uuid7
from tenure.model.payloads import TOO_DEEP
from tenure.web.api.jobs import accepted
from tenure.web.problems import Problem
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
        {"priority": "²"},
        {"priority": "9" * 5000},
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


async def test_what_is_small_only_when_it_is_compressed_is_left_out_of_lists_too(jobs, serving):
    """A page of 200 jobs with a megabyte of the same letter was 200 megabytes."""
    web = await serving.admin()
    large = {"why": "x" * 900_000}
    await send(web, "burn", large)
    await send(web, "burn", {"why": "x"}, meta={"note": "x" * 900_000})
    small = await send(web, "burn", {"why": "x" * 20_000})
    answer = await web.get("/jobs")
    assert len(answer.content) < 40_000
    jobs_ = answer.json()["jobs"]
    assert [(job["id"] == small, job["omitted"]) for job in jobs_] == [(True, False), (False, True), (False, True)]
    assert (jobs_[1]["meta"], jobs_[1]["input"], jobs_[2]["input"]) == (None, {"why": "x"}, None)
    assert (await web.get(f"/jobs/{jobs_[2]['id']}")).json()["input"] == large


@pytest.mark.parametrize("depth", [600, 3000])
@pytest.mark.parametrize("field", ["input", "meta", "auth", "system"])
async def test_what_is_nested_too_deeply_hides_no_other_job(jobs, serving, sql, depth, field):
    """SQL can write it. Lists failed, and live updates ended for every viewer."""
    server, token = await serving.serve(), await serving.token()
    web, live = await server.client(token), await server.live(token)
    job_id = await send(web)
    deep = f'{{"format":{"[" * depth}{"]" * depth},"password":"x"}}'
    [(deep_id, *_)] = sql("select * from tenure.enqueue(%s)", f'[{{"kind":"export_users","{field}":{deep}}}]')
    assert {job["id"] for job in (await web.get("/jobs")).json()["jobs"]} == {job_id, str(deep_id)}
    for path in (f"/jobs/{deep_id}", f"/jobs/{deep_id}/report", f"/jobs/{deep_id}/explain", f"/chains/{deep_id}", "/chains"):
        assert (await web.get(path)).status_code == 200, path
    assert (await web.get(f"/jobs/{deep_id}")).json()[field] == (None if field == "system" else TOO_DEEP)
    await live.send(type="subscribe", topics=[f"job:{deep_id}", f"job:{job_id}", f"chain:{deep_id}"])
    assert {(await live.receive())["topic"] for _ in range(3)} == {f"job:{deep_id}", f"job:{job_id}", f"chain:{deep_id}"}


@pytest.mark.parametrize(
    "given", ['"expires_at":"infinity"', '"expires_at":"-infinity"', '"expires":1e12', '"expires_at":"20000-01-01"']
)
async def test_a_time_that_python_cannot_read_hides_no_other_job(jobs, serving, sql, given):
    server, token = await serving.serve(), await serving.token()
    web, live = await server.client(token), await server.live(token)
    job_id = await send(web)
    [(odd_id, *_)] = sql("select * from tenure.enqueue(%s)", f'[{{"kind":"export_users",{given}}}]')
    assert {job["id"] for job in (await web.get("/jobs")).json()["jobs"]} == {job_id, str(odd_id)}
    await live.send(type="subscribe", topics=[f"job:{odd_id}", f"job:{job_id}"])
    assert {(await live.receive())["topic"] for _ in range(2)} == {f"job:{odd_id}", f"job:{job_id}"}


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


async def views_of(web, job_id):
    """As it is shown alone, and in a list."""
    listed = (await web.get("/jobs")).json()["jobs"]
    return [(await web.get(f"/jobs/{job_id}")).json(), *(job for job in listed if job["id"] == job_id)]


async def test_a_running_job_has_the_heartbeat_of_its_worker(app, serving, sql):
    release = asyncio.Event()

    @app.job
    async def wait() -> None:
        await release.wait()

    web = await serving.admin()
    job_id = await send(web, "wait", {})

    async with app.running():
        await until(lambda: state(web, job_id), is_="running")

        async def is_shown():
            [(beat,)] = sql("select heartbeat_at from tenure.workers")
            return [datetime.fromisoformat(job["last_heartbeat"]) for job in await views_of(web, job_id)] == [beat] * 2

        await until(is_shown)  # the worker may renew its lease in between
        release.set()
        await until(lambda: state(web, job_id), is_="completed")
    waiting = await send(web, "wait", {}, delay="1h")
    for job in [*await views_of(web, waiting), *await views_of(web, job_id)]:
        assert job["last_heartbeat"] is None


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


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/json;q=0", None),
        ("application/json; charset=utf-8; q=0.0", None),
        ("application/json;q=0, */*", "text/html"),
        ("application/*;q=0, */*;q=0.1", "text/html"),
        ("application/json;q=0.5, */*", "text/html"),
        ("*/*;q=0, text/plain", "text/plain"),
        ("text/plain, application/json", "text/plain"),
        ("text/plain;q=0.2, application/json;q=0.3", "application/json"),
        ("*/*", "application/json"),
    ],
)
def test_the_type_of_an_answer_is_the_one_that_the_accept_header_prefers(accept, expected):
    """A type with the weight 0 was sent all the same."""
    request = Request({"type": "http", "method": "GET", "headers": [(b"accept", accept.encode())]})
    offered = "application/json", "text/html", "text/plain"
    if expected is None:
        with pytest.raises(Problem) as caught:
            accepted(request, *offered)
        assert caught.value.status == 406
    else:
        assert accepted(request, *offered) == expected


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


async def test_a_replay_is_checked_by_the_published_schema(jobs, app_without_jobs, serving):
    web = await serving.admin(app=app_without_jobs)
    async with jobs.running():
        job_id = await send(web, "burn", {"why": "x"})
        await until(lambda: state(web, job_id), is_="dead_letter")
        refused = await web.post(f"/jobs/{job_id}/replay", json={"input": {"why": 1}})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "input.why")


@pytest.mark.parametrize("given", [None, 5, "x", [1]])
@pytest.mark.parametrize("has_code", [True, False])
async def test_a_replay_with_an_input_that_is_not_an_object_keeps_the_old_one(jobs, app_without_jobs, serving, given, has_code):
    web = await serving.admin(app=jobs if has_code else app_without_jobs)
    async with jobs.running():
        job_id = await send(web, "burn", {"why": "x"})
        await until(lambda: state(web, job_id), is_="dead_letter")
    refused = await web.post(f"/jobs/{job_id}/replay", json={"input": given})
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:tenure:problem:invalid-input")
    job = (await web.get(f"/jobs/{job_id}")).json()
    assert (job["state"], job["input"]) == ("dead_letter", {"why": "x"})


BULK = "tenure.bulk"


async def carried_out(web, **body) -> dict[str, int]:
    """The output of the job of a bulk action."""
    answer = await web.post("/jobs/bulk", json={**body, "dry_run": False})
    assert answer.status_code == 202, answer.text
    job = answer.json()["job"]
    assert (job["kind"], job["enqueued_by"]) == (BULK, "tests")

    async def completed():
        return (await web.get(f"/jobs/{job['id']}")).json()["status"]

    await until(completed, is_="completed")
    return (await web.get(f"/jobs/{job['id']}")).json()["output"]


@pytest.fixture
def untouched(sql):
    """Counts jobs by state, besides those of bulk actions."""
    counting = "select state, count(*) from tenure.all_jobs where kind <> 'tenure.bulk' group by state"
    return lambda: dict(sql(counting))


async def test_bulk_actions_count_first_and_are_carried_out_by_a_job(jobs, serving, untouched):
    web = await serving.admin()
    for n in range(5):
        await send(web, args={"format": "csv", "rows": n})
    await send(web, "burn", {"why": "x"})
    await web.post("/queues/exports/pause")
    body = {"action": "cancel", "filter": {"kind": "export_users"}}
    counted = (await web.post("/jobs/bulk", json=body)).json()
    assert counted == {
        "action": "cancel",
        "dry_run": True,
        "matched": 5,
        "more": False,
        "changed": 0,
        "job": None,
        "tracker": None,
    }
    assert untouched() == {"pending": 6}
    async with jobs.running(queues=["exports", "default"]):
        assert await carried_out(web, **body, reason="enough") == {"matched": 5, "changed": 5}
        await until(untouched, is_={"dead_letter": 1, "canceled": 5})
        one = (await web.get("/jobs", params={"state": "canceled", "limit": 1})).json()["jobs"][0]
        assert one["error"] == "canceled by tests: enough"
        done = await carried_out(web, action="delete", filter={"state": ["canceled"]})
        assert (done["changed"], untouched()) == (5, {"dead_letter": 1})


@pytest.fixture
def many(sql):
    """1,201 jobs of a kind that no worker runs."""
    sql(
        "insert into tenure.jobs (id, kind, state, position, chain_id, input) select id, 'strange', 'pending', n, id, '{}'"
        " from unnest(%s::uuid[]) with ordinality made (id, n)",
        [uuid7() for _ in range(1201)],
    )


@pytest.fixture
def batches(untouched, monkeypatch):
    """What other connections see after each batch of a bulk action, and an event that ends the wait after the first one."""
    seen, change = [], BulkAction.change
    go_on = asyncio.Event()

    async def spied(action, runtime, ids):
        done = await change(action, runtime, ids)
        seen.append((len(ids), untouched().get("canceled")))
        await go_on.wait()
        return done

    monkeypatch.setattr(BulkAction, "change", spied)
    return seen, go_on


async def test_a_bulk_action_changes_all_matches_in_batches_that_are_committed_one_by_one(jobs, serving, many, batches):
    """However many they are, it holds the locks of 500 jobs at most."""
    seen, go_on = batches
    go_on.set()
    web = await serving.admin()
    async with jobs.running():
        done = await carried_out(web, action="cancel", filter={"kind": "strange"})
    assert done == {"matched": 1201, "changed": 1201}
    assert seen == [(500, 500), (500, 1000), (201, 1201)]


async def test_counting_stops_in_time_also_if_no_job_matches(jobs, serving, monkeypatch):
    """It went on to the end of the history, or until the request was given up."""
    monkeypatch.setattr("tenure.store.lists.MOST_EXAMINED", 1)
    monkeypatch.setattr("tenure.web.api.bulk.COUNT_WITHIN", -1.0)
    web = await serving.admin()
    for _ in range(2):
        await web.post(f"/jobs/{await send(web)}/cancel")
    body = {"action": "delete", "filter": {"kind": "export_users", "priority": 99}}
    counted = (await web.post("/jobs/bulk", json=body)).json()
    assert (counted["matched"], counted["more"]) == (0, True)


async def test_a_bulk_action_that_is_canceled_leaves_the_batches_that_it_has_not_begun(jobs, serving, many, batches, untouched):
    web = await serving.admin()
    async with jobs.running():
        body = {"action": "cancel", "filter": {"kind": "strange"}, "dry_run": False}
        job_id = (await web.post("/jobs/bulk", json=body)).json()["job"]["id"]
        await until(lambda: batches[0], is_=[(500, 500)])
        assert (await web.post(f"/jobs/{job_id}/cancel")).status_code == 200
    assert untouched() == {"canceled": 500, "pending": 701}


async def test_bulk_replay_and_retry(jobs, serving, untouched):
    web = await serving.admin()
    await web.post("/queues/later/pause")
    ids = [await send(web, "burn", {"why": "x"}) for _ in range(3)]
    late = await send(web, "export_users", {"format": "csv"}, queue="later", delay="1h")
    async with jobs.running(queues=["default", "exports", "later"]):
        await until(untouched, is_={"dead_letter": 3, "scheduled": 1})
        assert await carried_out(web, action="replay", filter={"kind": "burn"}) == {"matched": 3, "changed": 3}
        assert await carried_out(web, action="retry", filter={"kind": "export_users"}) == {"matched": 1, "changed": 1}
        assert await state(web, late) == "pending"

        async def replays():
            reports = [(await web.get(f"/jobs/{job_id}/report")).json() for job_id in ids]
            return all("replayed" in str(report) for report in reports)

        await until(replays)


async def test_the_job_of_a_bulk_action_spares_itself_and_what_was_enqueued_later(jobs, serving, sql):
    web = await serving.admin()
    before = await send(web, queue="default", delay="1h")
    answer = (await web.post("/jobs/bulk", json={"action": "cancel", "filter": {"queue": "default"}, "dry_run": False})).json()
    after = await send(web, queue="default", delay="1h")
    async with jobs.running():
        await until(lambda: state(web, answer["job"]["id"]), is_="completed")
    assert (await state(web, before), await state(web, after)) == ("canceled", "scheduled")


async def test_the_job_of_a_bulk_action_goes_where_a_worker_is(jobs, serving):
    web = await serving.admin()
    await send(web)
    body = {"action": "cancel", "filter": {"kind": "burn"}, "dry_run": False}
    assert (await web.post("/jobs/bulk", json=body)).json()["job"]["queue"] == "default"
    async with jobs.running(queues=["mail"]):

        async def queue():
            return (await web.post("/jobs/bulk", json=body)).json()["job"]["queue"]

        await until(queue, is_="mail")


async def test_a_limited_token_gets_access_to_the_job_of_its_bulk_action(jobs, serving):
    server = await serving.serve()
    limited = await server.client(await serving.token("operate", name="shop", kinds=["burn"]))
    body = {"action": "cancel", "filter": {"kind": "burn"}, "dry_run": False}
    answer = (await limited.post("/jobs/bulk", json=body)).json()
    assert (await limited.get(f"/jobs/{answer['job']['id']}")).status_code == 404
    tracking = await server.client(answer["tracker"])
    assert (await tracking.get(f"/jobs/{answer['job']['id']}")).json()["status"] == "pending"
    assert (await tracking.post(f"/jobs/{answer['job']['id']}/cancel")).json()["canceled"]


async def test_built_in_kinds_cannot_be_dispatched_listed_or_given_another_input(jobs, serving, sql):
    web = await serving.admin()
    body = {"action": "delete", "filter": {"kind": "burn"}, "dry_run": False}
    job_id = (await web.post("/jobs/bulk", json=body)).json()["job"]["id"]
    async with jobs.running():
        await until(lambda: state(web, job_id), is_="completed")
        assert BULK not in {kind["name"] for kind in (await web.get("/kinds")).json()["kinds"]}
        refused = await web.post(f"/jobs/{BULK}/dispatch", json={"args": {"action": "delete", "filter": {}}})
        assert refused.status_code == 404
        operator = {"authorization": f"Bearer {await serving.token('operate')}"}
        again = await web.post(f"/jobs/{job_id}/retry", headers=operator)
        assert (again.status_code, again.json()["type"]) == (403, "urn:tenure:problem:scope"), "deleting needs admin"
    job_id = (await web.post("/jobs/bulk", json=body)).json()["job"]["id"]
    sql("update tenure.jobs set state = 'dead_letter', position = -1 where id = %s", job_id)
    replayed = await web.post(f"/jobs/{job_id}/replay", json={"input": {"action": "delete", "filter": {"queue": "default"}}})
    assert replayed.status_code == 409
    assert (await web.post(f"/jobs/{job_id}/replay", json={})).status_code == 200


@pytest.mark.parametrize("way", ["replay", "retry", "ids", "failure"])
async def test_a_bulk_deletion_is_run_again_by_admins_only(jobs, serving, sql, way):
    """By an operator, it deleted what matches by now."""
    server = await serving.serve()
    admin, operator = await server.client(await serving.token()), await server.client(await serving.token("operate", "ops"))
    job_id = await dead_bulk_action(admin, sql, "delete")
    if way in ("replay", "retry"):
        refused = await operator.post(f"/jobs/{job_id}/{way}", json={} if way == "replay" else None)
        assert (refused.status_code, refused.json()["type"]) == (403, "urn:tenure:problem:scope")
    else:
        [group] = (await operator.get("/failures")).json()["groups"]
        named = {"ids": [job_id]} if way == "ids" else {"failure": group["id"]}
        done = await operator.post("/jobs/bulk", json={"action": "replay", "filter": named, "dry_run": False})
        assert (done.status_code, done.json()["matched"], done.json()["changed"]) == (200, 0, 0)
    assert await state(admin, job_id) == "dead_letter"
    assert (await admin.post(f"/jobs/{job_id}/replay", json={})).status_code == 200


async def dead_bulk_action(web, sql, action):
    """Its job, as a dead letter."""
    body = {"action": action, "filter": {"kind": "burn"}, "dry_run": False}
    job_id = (await web.post("/jobs/bulk", json=body)).json()["job"]["id"]
    sql("update tenure.jobs set state = 'dead_letter', position = -1, error = 'ValueError: x' where id = %s", job_id)
    return job_id


async def test_an_operator_replays_other_bulk_actions(jobs, serving, sql):
    server = await serving.serve()
    job_id = await dead_bulk_action(await server.client(await serving.token()), sql, "cancel")
    operator = await server.client(await serving.token("operate", "ops"))
    assert (await operator.post(f"/jobs/{job_id}/replay", json={})).status_code == 200


async def test_bulk_actions_by_filter_leave_the_jobs_of_others_alone(jobs, serving, sql):
    """A filter by state or queue ran bulk deletions again, or canceled them half-way."""
    web = await serving.admin()
    dead = await dead_bulk_action(web, sql, "delete")
    late = await send(web, queue="default", delay="1h")
    for action, wanted in (("replay", {"state": ["dead_letter"]}), ("delete", {"queue": "default", "state": ["dead_letter"]})):
        assert (await web.post("/jobs/bulk", json={"action": action, "filter": wanted})).json()["matched"] == 0
    async with jobs.running():
        assert await carried_out(web, action="cancel", filter={"queue": "default"}) == {"matched": 1, "changed": 1}
    assert (await state(web, dead), await state(web, late)) == ("dead_letter", "canceled")


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        ({"action": "replay", "filter": {"kind": BULK}}, "invalid-value"),
        ({"action": "cancel", "filter": {}}, "invalid-value"),
        ({"action": "cancel", "filter": {"state": ["completed"]}}, "invalid-value"),
        ({"action": "explode", "filter": {"kind": "burn"}}, "invalid-request"),
        ({"action": "cancel", "filter": {"kind": "burn"}, "limit": 10}, "invalid-request"),
    ],
)
async def test_bulk_actions_that_are_refused(jobs, serving, body, slug):
    answer = await (await serving.admin()).post("/jobs/bulk", json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, f"urn:tenure:problem:{slug}")


async def test_large_system_data_without_headers_are_shown_whole(jobs, serving, dsn):
    web = await serving.admin()
    held = "".join(str(uuid4()) for _ in range(20_000))
    job_id = await send(web, "burn", {"why": "x"})
    with psycopg.connect(dsn) as connection:
        connection.execute("update tenure.jobs set system = jsonb_build_object('held', %s::text) where id = %s", [held, job_id])
    [listed] = (await web.get("/jobs")).json()["jobs"]
    assert (listed["omitted"], listed["system"]) == (False, {"held": held})
