"""The numbers of charts: series for each queue and kind, histograms, latencies by queue; and who the server is."""

from __future__ import annotations

import pytest

from tenure.client.rates import joined
from tenure.store.reports import LatencyRow
from tenure.version import __version__
from tests.waiting import until


@pytest.fixture
async def ran(jobs, serving):
    web = await serving.admin()
    async with jobs.running():
        for n in range(3):
            await jobs.enqueue("export_users", {"format": f"f{n}"})
        await jobs.enqueue("burn", {"why": "x"})

        async def ended():
            today = (await web.get("/stats")).json()["today"]
            return today.get("completed"), today.get("dead_letter")

        await until(ended, is_=(3, 1))
        yield web


@pytest.mark.parametrize(("by", "name"), [("queue", "exports"), ("kind", "export_users")])
async def test_a_series_for_each_queue_and_kind(ran, by, name):
    reply = (await ran.get("/stats/groups", params={"by": by, "last": "15m"})).json()
    [group] = [group for group in reply["groups"] if group["name"] == name]
    assert sum(point["counts"].get("completed", 0) for point in group["points"]) == 3
    assert sum(point["ran"] for point in group["points"]) > 0
    assert reply["step"] == 60


async def test_a_histogram_counts_every_job_that_ended(ran):
    reply = (await ran.get("/stats/histogram", params={"last": "15m", "queue": "exports"})).json()
    for measure in ("waited", "ran"):
        assert sum(jobs for point in reply["points"] for jobs in point[measure].values()) == 3
    assert (await ran.get("/stats/histogram", params={"last": "1h", "step": "7s"})).status_code == 422


async def test_latencies_of_a_queue_have_all_its_kinds(ran):
    reply = (await ran.get("/stats/latencies", params={"last": "15m", "by": "queue"})).json()["latencies"]
    assert {(one["queue"], one["kind"], one["measure"], one["jobs"]) for one in reply if one["queue"] == "exports"} == {
        ("exports", "", "waited", 3),
        ("exports", "", "ran", 3),
    }


def test_joined_rows_keep_every_job():
    rows = [LatencyRow("a", "x", "ran", 3, 2), LatencyRow("a", "y", "ran", 3, 5), LatencyRow("b", "x", "ran", 4, 1)]
    assert joined(rows, "queue") == [LatencyRow("a", "", "ran", 3, 7), LatencyRow("b", "", "ran", 4, 1)]
    assert joined(rows, "kind") == [
        LatencyRow("", "x", "ran", 3, 2),
        LatencyRow("", "y", "ran", 3, 5),
        LatencyRow("", "x", "ran", 4, 1),
    ]
    assert joined(rows, None) == rows


async def test_the_server_reports_its_versions_and_database(serving, sql):
    web = await serving.admin()
    reply = (await web.get("/server")).json()
    assert (reply["tenure"], reply["schema"], [(reply["database"],)]) == (__version__, "tenure", sql("select current_database()"))
    assert reply["postgresql"].split(".")[0].isdigit()


async def test_schedules_have_their_next_times(jobs, serving):
    web = await serving.admin()
    body = {"name": "nightly", "kind": "burn", "cron": "0 3 * * *", "timezone": "Europe/Berlin", "input": {"why": "x"}}
    made = (await web.post("/schedules", json=body)).json()
    assert len(made["upcoming"]) == 5
    assert all("T03:00:00" in at for at in made["upcoming"])
