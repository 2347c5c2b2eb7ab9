"""The numbers of charts: series for each queue and kind, histograms, latencies by queue; and who the server is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from tenure.client.rates import joined
from tenure.model.durations import to_seconds
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


TALLIES = """
    insert into tenure.tallies (at, queue, kind, what, jobs, waited, ran, waited_bucket, ran_bucket)
    select now() - make_interval(secs => n * ({seconds} / 400.0)), 'queue' || n % 2, 'kind' || n % 3,
           (array['enqueued', 'completed', 'failed', 'retry'])[1 + n % 4], 1 + n % 5,
           case when n % 4 > 0 then interval '1 second' end, case when n % 4 > 0 then interval '1 second' * (n % 5) end,
           case when n % 4 > 0 then n % 7 end, case when n % 4 > 0 then n % 9 end
      from generate_series(1, 390) n"""


async def merge(jobs, sql):
    """The leader moves the tallies into the counters of minutes, hours and days."""
    async with jobs.running():
        await until(lambda: sql("select count(*) from tenure.tallies"), is_=[(0,)])


def at_step(rows, step):
    """Rows by the begin of their step."""
    found = {}
    for at, *row in rows:
        begin = datetime.fromtimestamp(at.timestamp() // step * step, UTC).isoformat()
        found.setdefault(begin, []).append(row)
    return found


def histogram_of(rows, step):
    points = []
    for at, found in sorted(at_step(rows, step).items()):
        point = {"at": at, "waited": {}, "ran": {}}
        for jobs, waited, ran in found:
            for measure, bucket in (("waited", waited), ("ran", ran)):
                if bucket is not None:
                    point[measure][str(bucket)] = point[measure].get(str(bucket), 0) + jobs
        points += [point] if point["waited"] else []
    return points


class Period(NamedTuple):
    seconds: int
    """In which tallies were written."""
    last: str
    step: str | None
    width: int
    """Of the steps of the answer."""

    def params(self, less: int = 0) -> dict[str, str]:
        """`less`: of a period that is shorter by this many seconds. The answer about the same one is kept for some seconds."""
        return {"last": f"{int(to_seconds(self.last)) - less}s", **({"step": self.step} if self.step else {})}


HOUR, DAY, DAY_BY_HOURS = Period(3600, "1h", None, 60), Period(86000, "86300s", None, 1440), Period(86000, "24h", "1h", 3600)
WEEK, QUARTER = Period(7 * 86400, "8d", None, 4 * 3600), Period(80 * 86400, "90d", None, 2 * 86400)


@pytest.mark.parametrize("period", [HOUR, DAY, DAY_BY_HOURS, WEEK, QUARTER], ids=lambda period: period.last)
async def test_a_histogram_is_the_same_before_and_after_its_tallies_are_merged(jobs, serving, sql, period):
    """Of more than eight days it lacked what was older: the rows of hours are deleted by then."""
    web = await serving.admin()
    sql(TALLIES.format(seconds=period.seconds))
    everything = sql("select at, queue, kind, jobs, waited_bucket, ran_bucket from tenure.tallies")
    for limits in ({}, {"queue": "queue1"}, {"kind": "kind2"}, {"queue": "queue0", "kind": "kind1"}):
        rows = [
            (at, *counted)
            for at, queue, kind, *counted in everything
            if limits.get("queue", queue) == queue and limits.get("kind", kind) == kind
        ]
        reply = (await web.get("/stats/histogram", params={**period.params(), **limits})).json()
        assert (reply["step"], reply["points"]) == (period.width, histogram_of(rows, period.width))
    await merge(jobs, sql)
    reply = (await web.get("/stats/histogram", params=period.params(less=1))).json()
    assert reply["points"] == histogram_of([(at, *counted) for at, _, _, *counted in everything], period.width)


LATENCY = "latencies (at, span, queue, kind, measure, bucket, jobs)"
EDGES = {  # the table, what its rows have beside their time, their width, and the seconds of the period
    "/stats/histogram?last=15m": (LATENCY, "'minute', 'q', 'k', 'ran', 5", "minute", 900),
    "/stats/histogram?last=25h": (LATENCY, "'hour', 'q', 'k', 'ran', 5", "hour", 90_000),
    "/stats/histogram?last=9d": (LATENCY, "'day', 'q', 'k', 'ran', 5", "day", 9 * 86400),
    "/stats/groups?last=15m": ("minutes (minute, queue, kind, what, jobs)", "'q', 'k', 'completed'", "minute", 900),
    "/stats/groups?last=25h": ("counters (hour, queue, kind, what, jobs)", "'q', 'k', 'completed'", "hour", 90_000),
}


@pytest.mark.parametrize("path", EDGES)
async def test_a_period_begins_with_the_whole_minute_hour_or_day_in_which_it_begins(serving, sql, path):
    web = await serving.admin()
    into, row, span, seconds = EDGES[path]
    first = f"date_trunc('{span}', now() - interval '{seconds} seconds', 'UTC')"
    jobs = "(10 ^ (n + 3))::bigint"  # so that a sum tells of which rows it is
    sql(f"insert into tenure.{into} select {first} + n * interval '1 {span}', {row}, {jobs} from generate_series(-3, 3) n")
    [[began]] = sql(f"select {first}")
    reply = (await web.get(path)).json()
    if sql(f"select {first}") == [(began,)]:  # else a new minute has begun
        points = reply["points"] if "points" in reply else reply["groups"][0]["points"]
        assert sum(sum((point.get("counts") or point["ran"]).values()) for point in points) == 1_111_000


@pytest.mark.parametrize("by", ["queue", "kind"])
@pytest.mark.parametrize("period", [DAY, DAY_BY_HOURS, QUARTER._replace(width=36 * 3600)], ids=lambda period: period.last)
async def test_series_of_groups_are_the_same_before_and_after_their_tallies_are_merged(jobs, serving, sql, by, period):
    web = await serving.admin()
    sql(TALLIES.format(seconds=period.seconds))
    rows = sql(f"select at, {by}, what, jobs, coalesce(extract(epoch from ran), 0)::float8 from tenure.tallies")
    expected = {}
    for at, found in sorted(at_step(rows, period.width).items()):
        for name, what, many, ran in found:
            point = expected.setdefault(name, {}).setdefault(at, {"at": at, "counts": {}, "ran": 0.0})
            point["counts"][what] = point["counts"].get(what, 0) + many
            point["ran"] += ran
    groups = [{"name": name, "points": list(points.values())} for name, points in sorted(expected.items())]
    first = (await web.get("/stats/groups", params={"by": by, **period.params()})).json()
    assert (first["step"], first["groups"]) == (period.width, groups)
    await merge(jobs, sql)
    again = (await web.get("/stats/groups", params={"by": by, **period.params(less=1)})).json()
    assert again["groups"] == groups


@pytest.mark.parametrize("params", [{"last": "30d", "step": "1h"}, {"last": "9d", "step": "36h"}, {"last": "2d", "step": "90m"}])
async def test_a_step_of_a_histogram_is_as_wide_as_what_is_kept(serving, params):
    answer = await (await serving.admin()).get("/stats/histogram", params=params)
    assert (answer.status_code, "give a multiple of" in answer.text) == (422, True)


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
