"""Queues, limits, workers, leaders, schedules, kinds, stats and metrics."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from tenure.model.findings import Finding
from tenure.web.fleet_stats import FleetStats
from tenure.web.web_app import WebApp
from tenure.web.web_options import WebOptions
from tests.waiting import until


async def test_queues_can_be_paused_and_resumed(jobs, serving):
    web = await serving.admin()
    await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}})
    paused = await web.post("/queues/exports/pause", json={"reason": "repairs"})
    assert paused.json() == {"queue": "exports", "paused": True, "changed": True}

    async def found():
        queues = (await web.get("/queues")).json()["queues"]
        return {queue["name"]: (queue["pending"], queue["paused_by"], queue["pause_reason"]) for queue in queues}

    await until(found, is_={"exports": (1, "tests", "repairs")})
    assert (await web.post("/queues/exports/resume")).json()["changed"] is True
    assert (await web.post("/queues/exports/resume")).json()["changed"] is False


async def test_of_several_pauses_at_once_one_changes_the_queue(jobs, serving):
    web = await serving.admin()
    answers = await asyncio.gather(*(web.post("/queues/exports/pause", json={"reason": "repairs"}) for _ in range(10)))
    assert sorted(answer.json()["changed"] for answer in answers) == [False] * 9 + [True]
    entries = (await web.get("/audit", params={"limit": 50})).json()["entries"]
    assert sum(entry["before"] == {"paused": False} for entry in entries) == 1


async def test_a_limit_without_a_bound_has_no_rules(jobs, serving):
    web = await serving.admin()
    nothing = {"concurrency": None, "rate": None, "fair_by": None}
    await web.put("/limits/kind:export_users", json={"concurrency": {"most": 1, "per": "format"}})
    assert (await web.put("/limits/kind:export_users", json=nothing)).json()["rules"] == {}
    [limit] = (await web.get("/limits")).json()["limits"]
    assert limit["rules"] == {}
    again = await web.put("/limits/kind:export_users", json={"rate": {"most": 1, "every": 1, "per": "format"}})
    assert again.json()["rules"] == {"rate_per_key": [1, 1.0], "key": "format"}


async def test_limits_are_set_and_reset(jobs, serving):
    web = await serving.admin()
    body = {"concurrency": [{"most": 5}, {"most": 1, "per": "format"}], "rate": {"most": 10, "every": "1m"}}
    made = await web.put("/limits/kind:export_users", json=body)
    assert made.json()["rules"] == {"concurrency": 5, "concurrency_per_key": 1, "rate": [10, 60.0], "key": "format"}
    assert (await web.put("/limits/kind:export_users", json={"rate": None})).json()["rules"].keys() == {
        "concurrency",
        "concurrency_per_key",
        "key",
    }
    assert [limit["name"] for limit in (await web.get("/limits")).json()["limits"]] == ["kind:export_users"]
    assert (await web.delete("/limits/kind:export_users")).json()["rules"] == {}
    assert (await web.delete("/limits/kind:export_users")).status_code == 404
    assert (await web.put("/limits/nonsense", json={"concurrency": 1})).status_code == 422
    assert (await web.put("/limits/kind:x", json={})).status_code == 422


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"concurrency": -1}, "body.concurrency"),
        ({"concurrency": {"most": 5_000_000}}, "body.concurrency"),
        ({"concurrency": [{"most": 1}, {"most": 2}]}, "body.concurrency"),
        ({"concurrency": True}, "body.concurrency"),
        ({"rate": {"most": 1, "every": "soon"}}, "body.rate"),
        ({"rate": {"most": 0, "every": "1s"}}, "body.rate"),
        ({"rate": {"most": "1", "every": "1s"}}, "body.rate"),
        ({"fair_by": "a..b"}, "body.fair_by"),
    ],
)
async def test_a_wrong_limit_is_refused_with_its_path(jobs, serving, body, path):
    answer = await (await serving.admin()).put("/limits/queue:mail", json=body)
    assert answer.status_code == 422, answer.text
    assert {".".join(one["path"].split(".")[:2]) for one in answer.json()["errors"]} == {path}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"cron": "nonsense"}, "body.cron"),
        ({"every": "10m"}, "body.cron"),
        ({"timezone": "Mars/Base"}, "body.timezone"),
        ({"cron": None, "every": "1ms"}, "body.every"),
        ({"cron": None, "every": "1h", "jitter": "2h"}, "body.jitter"),
        ({"cron": None, "every": "1h", "timezone": "Europe/Berlin"}, "body.timezone"),
        ({"jitter": -1}, "body.jitter"),
        ({"priority": 101}, "body.priority"),
        ({"queue": ""}, "body.queue"),
        ({"name": ""}, "body.name"),
        ({"catch_up_limit": 0}, "body.catch_up_limit"),
        ({"expires": "soon"}, "body.expires"),
    ],
)
async def test_a_wrong_schedule_is_refused_with_its_path(jobs, serving, change, path):
    body = {"name": "nightly", "kind": "export_users", "cron": "0 3 * * *", "input": {"format": "csv"}, **change}
    answer = await (await serving.admin()).post("/schedules", json=body)
    assert (answer.status_code, [one["path"] for one in answer.json()["errors"]]) == (422, [path])


@pytest.mark.parametrize("query", ["last=1s", "last=soon", "step=1s", "step=x", "nonsense=1"])
async def test_a_wrong_parameter_is_refused_with_its_path(jobs, serving, query):
    answer = await (await serving.admin()).get(f"/stats/series?{query}")
    assert (answer.status_code, [one["path"] for one in answer.json()["errors"]]) == (422, [f"query.{query.partition('=')[0]}"])


async def test_workers_and_leaders(jobs, serving):
    web = await serving.admin()
    async with jobs.running():
        [worker] = (await web.get("/workers")).json()["workers"]
        assert (worker["alive"], worker["concurrency"], "export_users" in worker["kinds"]) == (True, 10, True)

        async def duties():
            return {leader["duty"]: leader["state"] for leader in (await web.get("/leaders")).json()["leaders"]}

        await until(duties, is_=dict.fromkeys(["cleaner", "cron", "doctor", "reaper", "resolver", "rollup", "stager"], "holds"))
        assert {leader["worker"] for leader in (await web.get("/leaders")).json()["leaders"]} == {worker["name"]}


async def test_a_worker_is_drained_and_resumed(jobs, serving):
    web = await serving.admin()
    async with jobs.running():
        [worker] = (await web.get("/workers")).json()["workers"]
        assert worker["draining_at"] is None
        drained = await web.post(f"/workers/{worker['id']}/drain")
        assert drained.json() == {"workers": [worker["id"]], "draining": True}
        [shown] = (await web.get("/workers")).json()["workers"]
        assert shown["draining_at"] is not None
        assert "tenure_workers_draining 1" in (await web.get("/metrics")).text
        sent = (await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}})).json()
        [reason] = (await web.get(f"/jobs/{sent['id']}/explain")).json()["reasons"]
        assert reason["code"] == "draining"
        assert (await web.post(f"/workers/{worker['id']}/resume")).json()["draining"] is False
        await until(lambda: _status(web, sent["id"]), is_="completed")
    entries = (await web.get("/audit")).json()["entries"]
    assert {entry["action"] for entry in entries} >= {"drain_worker", "resume_worker"}


async def _status(web, job_id):
    return (await web.get(f"/jobs/{job_id}")).json()["status"]


@pytest.mark.parametrize("worker", ["nonsense", "01890000-0000-7000-8000-000000000000"])
async def test_a_worker_that_does_not_exist_cannot_be_drained(jobs, serving, worker):
    answer = await (await serving.admin()).post(f"/workers/{worker}/drain")
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:tenure:problem:not-found")


async def test_schedules_are_created_changed_run_paused_and_deleted(jobs, serving):
    web = await serving.admin()
    body = {"name": "nightly", "kind": "export_users", "cron": "0 3 * * *", "input": {"format": "csv"}}
    made = await web.post("/schedules", json=body)
    assert (made.status_code, made.json()["words"], made.json()["queue"]) == (201, "at 03:00 every day, UTC", "exports"), (
        made.text
    )
    assert (await web.post("/schedules", json=body)).status_code == 409
    assert (await web.post("/schedules", json={**body, "name": "x", "input": {"format": 1}})).status_code == 422
    assert (await web.post("/schedules", json={**body, "name": "x", "cron": "nonsense"})).status_code == 422
    changed = await web.patch("/schedules/nightly", json={"every": "10m", "priority": "low"})
    assert (changed.json()["every"], changed.json()["cron"], changed.json()["priority"]) == (600.0, None, 25)
    assert (await web.post("/schedules/nightly/pause", json={"reason": "quiet"})).json()["pause_reason"] == "quiet"
    assert (await web.post("/schedules/nightly/resume")).json()["paused_at"] is None
    ran = await web.post("/schedules/nightly/run", json={"input": {"format": "xml"}})
    assert ran.status_code == 202
    assert (await web.get(f"/jobs/{ran.json()['id']}")).json()["input"] == {"format": "xml"}
    assert [tick["job_id"] for tick in (await web.get("/schedules/nightly/ticks")).json()["ticks"]] == [ran.json()["id"]]
    assert [one["name"] for one in (await web.get("/schedules")).json()["schedules"]] == ["nightly"]
    assert (await web.delete("/schedules/nightly")).status_code == 204
    assert (await web.get("/schedules/nightly")).status_code == 404


@pytest.mark.parametrize("has_code", [True, False])
async def test_a_schedule_has_what_its_kind_declares(app, app_without_jobs, serving, has_code):
    @app.job(queue="mail", priority="high", capability="smtp", max_attempts=1, expires="1h")
    async def send(to: str) -> None: ...

    declared = {"queue": "mail", "priority": 75, "capability": "smtp", "max_attempts": 1, "expires": 3600.0}
    async with app.running():
        web = await serving.admin(app=app if has_code else app_without_jobs)
        body = {"name": "s", "kind": "send", "every": "1h", "input": {"to": "x"}}
        made = (await web.post("/schedules", json=body)).json()
        assert {name: made[name] for name in declared} == declared
        ran = (await web.post("/schedules/s/run")).json()
        job = (await web.get(f"/jobs/{ran['id']}")).json()
        assert (job["queue"], job["max_attempts"], job["capability"]) == ("mail", 1, "smtp")
        changed = (await web.patch("/schedules/s", json={"queue": "other", "priority": 1, "expires": 60})).json()
        assert (changed["queue"], changed["priority"], changed["expires"]) == ("other", 1, 60.0)
        reset = (await web.patch("/schedules/s", json={"queue": None, "priority": None, "expires": None})).json()
        assert {name: reset[name] for name in declared} == declared


async def test_kinds_have_their_schemas_also_in_a_process_without_the_handlers(jobs, app_without_jobs, serving):
    async with jobs.running():
        web = await serving.admin(app=app_without_jobs)
        kinds = {kind["name"]: kind for kind in (await web.get("/kinds")).json()["kinds"]}
        assert set(kinds) == {"export_users", "burn", "charge"}
        kind = (await web.get("/kinds/export_users")).json()
        assert kind == kinds["export_users"]
    assert (kind["description"], kind["queue"], kind["workers"], kind["makes_key"]) == ("Exports all users.", "exports", 1, False)
    assert kind["input"]["properties"].keys() == {"format", "rows"}
    assert kinds["charge"]["makes_key"] is True
    assert (await web.get("/kinds/nonsense")).status_code == 404


async def test_stats_and_their_series(jobs, serving):
    web = await serving.admin()
    for wanted in ("csv", "xml"):
        await web.post("/jobs/export_users/dispatch", json={"args": {"format": wanted}})
    async with jobs.running():

        async def today():
            return (await web.get("/stats")).json()["today"].get("completed")

        await until(today, is_=2)
        stats = (await web.get("/stats")).json()
    assert (stats["totals"]["workers"], stats["totals"]["slots"], stats["capped"]) == (1, 10, [])
    series = (await web.get("/stats/series", params={"last": "15m", "kind": "export_users"})).json()
    counts = [point["counts"] for point in series["points"]]
    assert sum(count.get("completed", 0) for count in counts) == sum(count.get("enqueued", 0) for count in counts) == 2
    assert series["step"] == 60
    latencies = (await web.get("/stats/latencies", params={"queue": "exports"})).json()["latencies"]
    assert {latency["measure"]: latency["jobs"] for latency in latencies} == {"waited": 2, "ran": 2}
    assert (await web.get("/stats/series", params={"last": "7d"})).json()["step"] == 3 * 3600
    for params in ({"last": "1s"}, {"last": "1y"}, {"last": "91d"}, {"step": "1s"}, {"last": "24h", "step": "90s"}):
        assert (await web.get("/stats/series", params=params)).status_code == 422


SORTS = {
    "pending": ("pending", None),
    "scheduled": ("scheduled", 0),
    "retry": ("retry", 0),
    "sleeping": ("waiting", 0),
    "waiting": ("waiting", -2),
    "blocked": ("blocked", -2),
    "dead_letter": ("dead_letter", -1),
}
"""How jobs wait, with their state and position. A workflow waits for a time or for an event."""


def insert(sql, queue, **jobs):
    for sort, number in jobs.items():
        state, position = SORTS[sort]
        sql(
            "insert into tenure.jobs (id, kind, queue, state, position, run_at)"
            " select gen_random_uuid(), 'burn', %s, %s, coalesce(%s::bigint, nextval('tenure.job_position')),"
            " case when %s::bigint = 0 then now() + n * interval '1 minute' end from generate_series(1, %s::integer) n",
            *(queue, state, position, position, number),
        )


async def queues_of(web):
    return {queue["name"]: queue for queue in (await web.get("/queues")).json()["queues"]}


COUNTED = ("pending", "scheduled", "retry", "waiting", "blocked", "dead_letter")


async def test_every_state_is_counted_in_each_of_many_queues(jobs, serving, sql):
    for n in range(30):
        insert(sql, f"q{n:02}", pending=1, scheduled=40, retry=3, sleeping=2, waiting=15, blocked=10, dead_letter=25)
    insert(sql, "large", scheduled=1500, waiting=201)
    web = await serving.admin()
    queues = await queues_of(web)
    assert len(queues) == 31
    small = {(*(queue[state] for state in COUNTED), *queue["capped"]) for name, queue in queues.items() if name != "large"}
    assert small == {(1, 40, 3, 17, 10, 25)}
    assert (queues["large"]["scheduled"], queues["large"]["capped"]) == (1500, [])
    stats = (await web.get("/stats")).json()
    assert [stats["totals"][state] for state in COUNTED] == [30, 2700, 90, 711, 300, 750]
    assert stats["capped"] == []


async def test_a_dead_letter_is_counted_beside_those_of_another_queue(jobs, serving, sql):
    insert(sql, "mail", dead_letter=600)
    insert(sql, "zebra", dead_letter=1)
    lines = (await (await serving.admin()).get("/metrics")).text.splitlines()
    assert 'tenure_jobs{queue="mail",state="dead_letter"} 600' in lines
    assert 'tenure_jobs{queue="zebra",state="dead_letter"} 1' in lines
    assert not [line for line in lines if line.startswith("tenure_jobs_capped{")]


@pytest.fixture
def few_counted(monkeypatch):
    """Twelve of a sort, and of queues at least three each."""
    monkeypatch.setattr("tenure.web.fleet_stats.MOST_COUNTED", 12)
    monkeypatch.setattr("tenure.web.fleet_stats.FEWEST_COUNTED", 3)


@pytest.mark.usefixtures("jobs", "few_counted")
@pytest.mark.parametrize(("sort", "capped"), [("pending", ["pending"]), ("blocked", ["blocked", "waiting"])])
async def test_counting_a_queue_stops_at_its_bound(serving, sql, sort, capped):
    insert(sql, "full", **{sort: 30})
    insert(sql, "other", **{sort: 2})
    queues = await queues_of(await serving.admin())
    assert (queues["full"][sort], queues["full"]["capped"]) == (3, capped)
    assert (queues["other"][sort], queues["other"]["capped"]) == (2, [])
    assert all(queue["oldest_pending_seconds"] >= 0 for queue in queues.values() if queue["pending"])


@pytest.mark.usefixtures("jobs", "few_counted")
@pytest.mark.parametrize(
    ("sort", "capped"),
    [
        ("scheduled", ["scheduled", "retry", "waiting"]),
        ("sleeping", ["scheduled", "retry", "waiting"]),
        ("dead_letter", ["dead_letter"]),
    ],
)
async def test_where_counting_all_queues_stops_no_queue_is_reported_as_exact(serving, sql, sort, capped):
    """Also not one whose jobs were not reached, nor one that has none."""
    insert(sql, "a", pending=1, **{sort: 12})
    insert(sql, "z", pending=1)
    web = await serving.admin()
    queues = await queues_of(web)
    assert {name: queue["capped"] for name, queue in queues.items()} == {"a": capped, "z": capped}
    assert (await web.get("/stats")).json()["capped"] == sorted(capped)
    metrics = (await web.get("/metrics")).text
    assert f'tenure_jobs_capped{{queue="z",state="{capped[0]}"}} 1' in metrics.splitlines()


SAMPLE = re.compile(r'^([a-z_]+)(\{(?:[a-z]+="(?:[^"\\]|\\.)*",?)*\})? (\S+)$')


async def test_metrics_are_in_the_format_of_prometheus(jobs, serving):
    web = await serving.admin()
    await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}, "queue": 'a "b\\'})
    await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}})
    facts = (
        'tenure_jobs_ended_total{queue="exports",kind="export_users",outcome="completed"} 1',
        'tenure_leader_held{duty="stager"} 1',  # a worker may run jobs before it is elected for its duties
    )
    async with jobs.running():

        async def reported():
            answer = await web.get("/metrics")
            return answer if all(fact in answer.text for fact in facts) else None

        answer = await until(reported)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert all(line.startswith("# ") or SAMPLE.match(line) for line in lines)
    assert r'tenure_jobs{queue="a \"b\\",state="pending"} 1' in lines
    assert "workers_total 1" in lines
    assert "tenure_slots 10" in lines
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) >= 20


async def test_a_histogram_is_cumulative(jobs, serving):
    web = await serving.admin()
    async with jobs.running():
        for _ in range(3):
            await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}})

        async def counted():
            return 'tenure_job_run_seconds_count{queue="exports",kind="export_users"} 3' in (await web.get("/metrics")).text

        await until(counted, within=30)
        text = (await web.get("/metrics")).text
    found = re.findall(r'tenure_job_run_seconds_bucket\{queue="exports",kind="export_users",le="([^"]+)"\} (\d+)', text)
    assert [int(count) for _, count in found] == sorted(int(count) for _, count in found)
    assert found[-1] == ("+Inf", "3")


async def test_probes_do_not_take_the_connections_of_others(jobs, serving, sql):
    server = await serving.serve()
    web = await server.client()
    assert (await web.get("/readyz")).status_code == 200
    sql("begin; lock table tenure.tokens in access exclusive mode")
    asking = [asyncio.create_task(web.get("/readyz")) for _ in range(20)]
    waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    await until(lambda: sql(waiting) != [(0,)])
    for _ in range(5):  # the others arrive
        assert (await web.get("/healthz")).status_code == 200
        assert sql(waiting) == [(1,)]
    sql("rollback")
    assert {(await task).status_code for task in asking} <= {200, 503}
    assert (await web.get("/readyz")).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_probes_need_no_token(jobs, serving, path):
    server = await serving.serve()
    assert (await (await server.client()).get(path)).json() == {"status": "ok"}


async def test_the_leader_records_the_fleet_and_the_version_of_the_app(jobs, serving, sql):
    web = await serving.admin()
    jobs.configure(app_version="2026.11.3")
    async with jobs.running():
        [worker] = (await web.get("/workers")).json()["workers"]
        assert worker["app_version"] == "2026.11.3"
        assert worker["version"] != "2026.11.3", "that is Tenure's"
        await until(lambda: sql("select 1 from tenure.fleet_minutes where workers > 0"))
        point = (await web.get("/stats/fleet")).json()["points"][-1]
    assert (point["workers"], point["slots"], point["app_versions"]) == (1, 10, ["2026.11.3"])


async def test_the_history_of_the_fleet_by_queue(jobs, serving, sql):
    web = await serving.admin()
    for age, pending in (("1 minute", 5), ("2 minutes", 9)):
        sql(
            "insert into tenure.fleet_minutes"
            " values (date_trunc('minute', now() - %s::interval), 2, 20, 3, %s, 70, 81.5, '[]', %s)",
            *(age, pending, f'[{{"name": "mail", "pending": {pending}, "oldest": 70}}]'),
        )
    reply = (await web.get("/stats/fleet", params={"last": "15m", "step": "1m"})).json()
    assert [point["pending"] for point in reply["points"]] == [9, 5]
    assert [(queue["name"], [point["pending"] for point in queue["points"]]) for queue in reply["queues"]] == [("mail", [9, 5])]
    assert reply["points"][0] | {"at": ""} == {
        "at": "", "workers": 2, "slots": 20, "busy": 3, "pending": 9, "oldest_pending_seconds": 70.0, "memory_mb": 81.5,
        "app_versions": [],
    }  # fmt: skip


async def test_what_all_viewers_see_is_read_once_for_them(jobs, serving):
    """Workers, leaders, limits, schedules and kinds, and lists of jobs if the caller allows it."""
    asgi = WebApp(jobs, WebOptions())
    web = await (await serving.serve(asgi)).client(await serving.token())
    paths = (
        "/workers",
        "/leaders",
        "/limits",
        "/schedules",
        "/kinds",
        "/queues",
        "/jobs?state=running&max_age=30",
        "/audit?max_age=30",
    )
    for path in paths:
        assert (await web.get(path)).status_code == 200
    services, asked = asgi.services(), []
    reader = services.session.reader

    def counting(*args, **options):
        fetch = reader(*args, **options)

        async def read(query):
            asked.append(query.name)
            return await fetch(query)

        return read

    services.session.reader = counting
    for path in paths:
        assert (await web.get(path)).status_code == 200
    assert asked == []
    await web.get("/jobs?state=running")
    assert asked != [], "a list that may not be old is read again"


async def test_few_lists_are_kept_and_none_that_is_too_old(monkeypatch):
    """Two hundred were kept, of any age, and a caller chooses them: pages of large jobs used gigabytes."""
    monkeypatch.setattr("tenure.web.fleet_stats.MOST_LISTS", 2)
    clock, made = SimpleNamespace(now=0.0), list[int]()
    monkeypatch.setattr("tenure.web.fleet_stats.time", SimpleNamespace(monotonic=lambda: clock.now))
    stats = FleetStats(*[None] * 5)

    async def ask(number: int) -> None:
        async def read() -> None:
            made.append(number)

        await stats.kept_list("jobs", (number,), read, 30)

    for number in (1, 2, 1, 3, 2, 1):
        await ask(number)
    assert (made, len(stats._lists)) == ([1, 2, 3, 1], 2)
    clock.now = 31.0
    await ask(4)
    assert [values for _, values in stats._lists] == [(4,)]


async def test_a_change_is_seen_by_the_next_question(jobs, serving):
    """Although answers are shared for some seconds."""
    web = await serving.admin()
    await web.get("/limits")
    await web.put("/limits/queue:mail", json={"concurrency": 3})
    assert [limit["name"] for limit in (await web.get("/limits")).json()["limits"]] == ["queue:mail"]
    await web.get("/schedules")
    await web.post(
        "/schedules", json={"name": "nightly", "kind": "export_users", "cron": "0 3 * * *", "input": {"format": "csv"}}
    )
    assert [one["name"] for one in (await web.get("/schedules")).json()["schedules"]] == ["nightly"]
    await web.post("/schedules/nightly/pause")
    assert (await web.get("/schedules")).json()["schedules"][0]["paused_at"] is not None
    await web.delete("/schedules/nightly")
    assert (await web.get("/schedules")).json()["schedules"] == []
    await web.get("/queues")
    await web.post("/queues/mail/pause")
    assert [queue["paused_by"] for queue in (await web.get("/queues")).json()["queues"] if queue["name"] == "mail"] == ["tests"]


async def test_the_findings_of_a_duty_are_values(jobs, serving, database):
    database.term("doctor")
    found = Finding("old_transaction", "session 4: idle; for 5m", "end it; see: the log", about="4")
    database.sql("update tenure.leases set metadata = %s::jsonb", json.dumps({"findings": ["x"], "found": [asdict(found)]}))
    [leader] = (await (await serving.admin()).get("/leaders")).json()["leaders"]
    assert leader["findings"] == [
        {"code": found.code, "text": found.text, "way_out": found.way_out, "severity": "problem", "about": "4"}
    ]
