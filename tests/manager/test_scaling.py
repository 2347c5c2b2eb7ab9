"""`tenure up`: more processes when jobs wait, fewer when they do not, and no job notices."""

from __future__ import annotations

import asyncio
import re
from collections import Counter

import psycopg
import pytest

from tenure.manager.plan import PoolPlan
from tenure.manager.pool import Pool
from tenure.manager.scaling import Scaling
from tenure.manager.spec import ChildHello, ChildSpec
from tenure.store import workers
from tenure.store.link import Link
from tests.manager.worker_helpers import serving
from tests.waiting import until

pytestmark = pytest.mark.slow

QUICKLY = {
    "TENURE_LOG": "DEBUG",
    "TENURE_WORKERS_DEFAULT_COUNT": "1",
    "TENURE_WORKERS_MAX_COUNT": "4",
    "TENURE_WORKERS_CONCURRENCY": "5",
    "TENURE_WORKERS_SCALE_INTERVAL_MS": "500",
    "TENURE_WORKERS_SCALE_DOWN_SECONDS": "2",
}
MEASUREMENT = re.compile(r"pool=(\w+)  measurement=(\d+)  pending=(\d+)  .*  processes_before=(\d+)  processes=(\d+)")


def measurements(worker, pool="default") -> list[tuple[int, int, int, int]]:
    """Number, jobs that waited, processes before and after."""
    return [tuple(map(int, found)) for name, *found in MEASUREMENT.findall(worker.said) if name == pool]


async def test_a_burst_is_met_within_two_looks_and_every_job_runs_exactly_once(start, run_log, queue):
    up = start(command="up", env=QUICKLY)
    await serving(up)
    assert len(up.children()) == 1

    ids = queue.add("short", 1000)
    await queue.completed(*ids, within=60)

    burst = next(number for number, waiting, _, _ in measurements(up) if waiting > 20)
    most = next(number for number, _, _, after in measurements(up) if after == 4)
    assert most - burst <= 1
    assert len({entry["pid"] for entry in run_log.entries()}) > 1, "the new processes ran nothing"
    await until(lambda: len(up.children()), is_=1)
    assert [after - before for _, _, before, after in measurements(up) if after < before] == [-1] * 3
    assert Counter(entry["job"] for entry in run_log.entries()) == Counter(ids)
    # Not the fence: a job whose claim was under way when its process was asked to stop is requeued before it begins.
    assert set(queue.sql("select attempt, crashes from tenure.history")) == {(1, 0)}
    assert "died" not in up.said


async def test_those_with_the_least_to_do_go_first_and_the_others_run_on(start, run_log, queue):
    up = start(command="up", env={**QUICKLY, "TENURE_WORKERS_CONCURRENCY": "1"})
    await serving(up)
    ids = [*queue.add("patient"), *queue.add("until_released", 2)]
    await until(lambda: run_log.runs(*ids), is_=[1, 1, 1])
    [kept] = {entry["pid"] for entry in run_log.entries(kind="patient")}

    run_log.release()

    await until(up.children, is_=[kept])
    run_log.release("second_release")
    await queue.completed(*ids)
    assert (run_log.runs(*ids), queue.of(ids[0], "fence", "crashes")) == ([1, 1, 1], (1, 0))


async def test_one_that_is_too_many_drains_for_longer_than_the_grace_of_a_shutdown(start, run_log, queue):
    """Two processes, each with one job left: one would do, so the other claims nothing more, and finishes what it runs."""
    env = {**QUICKLY, "TENURE_WORKERS_GRACE_SECONDS": "1", "TENURE_WORKERS_SCALE_DOWN_SECONDS": "1"}
    up = start(command="up", env=env)
    await serving(up)
    patient: list[str] = []
    for started in (5, 10):
        queue.add("until_released", 4)
        patient += queue.add("patient")
        await until(lambda started=started: len(run_log.entries()), is_=started)
    assert len({entry["pid"] for entry in run_log.entries(kind="patient")}) == 2

    run_log.release()
    await until(lambda: measurements(up)[-1][3] == 1)
    looked = measurements(up)[-1][0]
    await until(lambda: measurements(up)[-1][0] >= looked + 6)  # three seconds
    assert len(up.children()) == 2
    run_log.release("second_release")

    await queue.completed(*patient)
    assert run_log.runs(*patient) == [1, 1]
    await until(lambda: len(up.children()), is_=1)
    assert "killed" not in up.said


async def test_a_fixed_number_is_neither_scaled_nor_asked_about(start, run_log, queue):
    up = start("--processes", "1", command="up", env={**QUICKLY})
    await serving(up)
    await queue.completed(*queue.add("short", 100), within=20)
    assert (len(up.children()), measurements(up)) == (1, [])
    asking = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'tenure scale'"
    [(asked,)] = queue.sql(asking)
    assert asked == 0


POOLS = """
[workers]
default_count = 1
max_count = 1

[workers.others]
queues = ["other"]
concurrency = 2
"""


async def test_pools_have_their_own_queues_and_the_rest_is_left_to_the_first(start, run_log, queue, project):
    (project / "tenure.toml").write_text(POOLS)
    up = start(command="up")
    await serving(up, 2)

    here, there = queue.add("quick", 20), queue.add("elsewhere", 20, queue="other")
    await queue.completed(*here, *there)

    pids = {kind: {entry["pid"] for entry in run_log.entries(kind=kind)} for kind in ("quick", "elsewhere")}
    assert (len(pids["quick"]), len(pids["elsewhere"])) == (1, 1)
    assert pids["quick"] != pids["elsewhere"]
    served = queue.sql("select queues::text, concurrency from tenure.workers order by 2")
    assert served == [('["other"]', 2), ('["default"]', 10)]


async def test_a_single_pool_can_be_started_on_a_machine_of_its_own(start, queue, project):
    (project / "tenure.toml").write_text(POOLS)
    up = start("--pool", "others", command="up")
    await serving(up)
    [elsewhere], [here] = queue.add("elsewhere", queue="other"), queue.add("quick")
    await queue.completed(elsewhere)
    assert (queue.of(here, "state"), len(up.children())) == (("pending",), 1)


async def test_the_first_pool_ends_when_the_others_serve_all_queues(start, queue, project, run_log):
    (project / "tenure.toml").write_text('[workers]\ndefault_count = 1\n[workers.all]\nqueues = ["default", "other"]\n')
    up = start(command="up")
    await until(lambda: "pool stops its processes" in up.said)
    await until(lambda: len(up.children()), is_=1)
    await queue.completed(*queue.add("quick"), *queue.add("elsewhere", queue="other"))


@pytest.fixture
def pool(dsn) -> Pool:
    """Of which no process is ever started: only its number is looked at."""
    spec = ChildSpec(app="", folder="", flags={})
    pool = Pool(PoolPlan(spec=spec, default_count=2, max_count=8, patience=3), services=None)
    pool.hello = ChildHello(
        **dict.fromkeys(ChildHello.__dataclass_fields__, 0)
        | {"dsn": dsn, "queues": ["default"], "kinds": ["quick"], "capabilities": [], "concurrency": 10}
    )
    return pool


@pytest.fixture
async def link(database_target):
    async with Link(database_target, "control", hot=True) as link:
        yield link


async def test_a_look_during_an_outage_changes_nothing(pool, queue, link):
    scaling = Scaling(link, [pool], 1.0, asyncio.Event())
    try:
        queue.add("quick", 60)
        await scaling.turn()
        assert pool.wanted == 6
        queue.sql("delete from tenure.jobs")
        await scaling.turn()
        queue.sql("alter table tenure.jobs rename to gone")
        with pytest.raises(Exception, match="jobs"):
            await scaling.turn()
        queue.sql("alter table tenure.gone rename to jobs")
        for expected in (6, 5, 4, 3, 2, 2):
            await scaling.turn()
            assert pool.wanted == expected
    finally:
        await scaling.close()


async def test_after_a_look_that_took_long_the_next_one_does_not_hold_up_the_renewal(pool, queue, link, dsn, monkeypatch):
    monkeypatch.setattr("tenure.manager.scaling.SLOW", 0.0)
    scaling = Scaling(link, [pool], 1.0, asyncio.Event())
    own = "from pg_stat_activity where datname = current_database() and application_name = 'tenure scale'"
    try:
        await scaling.turn()
        with psycopg.connect(dsn) as dba:
            dba.execute("lock table tenure.jobs in access exclusive mode")
            look = asyncio.create_task(scaling.turn())
            await until(lambda: queue.sql(f"select wait_event_type {own}"), is_=[("Lock",)])
            await link.fetch(workers.extend([], ttl=15))
            monkeypatch.setattr("tenure.manager.scaling.SLOW", 60.0)
        await look
        await until(lambda: queue.sql(f"select pid {own}"), is_=[])
        assert scaling.measurements == 2
    finally:
        await scaling.close()


async def test_a_paused_queue_brings_no_process(pool, queue, link):
    scaling = Scaling(link, [pool], 1.0, asyncio.Event())
    try:
        queue.sql("insert into tenure.queues (name, paused_at) values ('default', now())")
        queue.add("quick", 60)
        assert await scaling.turn() >= 1.0
        assert (pool.wanted, scaling.measurements) == (2, 1)
    finally:
        await scaling.close()


async def test_no_process_is_added_while_the_supervisor_stops(pool, queue, link):
    stopping = asyncio.Event()
    scaling = Scaling(link, [pool], 1.0, stopping)
    try:
        queue.add("quick", 60)
        stopping.set()
        assert await scaling.turn() >= 1.0
        assert pool.wanted == 2
        stopping.clear()
        await scaling.turn()
        assert pool.wanted == 6
    finally:
        await scaling.close()
