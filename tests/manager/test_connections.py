"""How many connections a worker holds, as PostgreSQL counts them: few, whether it is idle, busy or the leader."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.manager.worker_helpers import serving
from tests.waiting import until

# A statement that takes seconds is asked by one more connection what it waits for: on a busy machine that may happen here.
OURS = """select application_name from pg_stat_activity
           where datname = current_database() and application_name like 'tenure %%' and application_name <> 'tenure diagnose'"""
LEADS = "select count(*) from tenure.leases where expires_at > clock_timestamp()"

FOUR = ["tenure claim", "tenure control", "tenure duties", "tenure settle"]

LIMITED = """
from tenure import Limit

@app.job(concurrency=Limit(2), queue="limited")
async def limited(ctx: Context) -> str:
    return "done"
"""


class Peak:
    """By what they are for, the most connections that were seen at a time."""

    def __init__(self, queue):
        self._queue = queue
        self.most: Counter[str] = Counter()

    def look(self):
        self.most |= Counter(name for (name,) in self._queue.sql(OURS))
        return True


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)])
async def test_a_worker_has_four_connections_and_two_more_for_each_further_process(start, run_log, queue, project, processes):
    jobs = project / "jobs.py"
    jobs.write_text(jobs.read_text() + LIMITED)
    worker = start("--processes", str(processes), "--queues", "default,limited")
    await serving(worker, processes)
    await until(lambda: queue.sql(LEADS)[0][0] >= 6)  # it leads, too
    peak = Peak(queue)

    for _ in range(5):
        ids = [*queue.add("quick", 40), *queue.add("limited", 20, queue="limited"), *queue.add("says", 5, word="hello")]
        run_log.release()
        await until(lambda: peak.look() and queue.states(*ids), is_={"completed": 65}, within=30)  # noqa: B023
    await until(lambda: peak.look() and not queue.sql("select 1 from tenure.jobs"))

    expected = Counter({"tenure control": 1, "tenure duties": 1, "tenure claim": processes, "tenure settle": processes})
    # A round of a duty that is held up, on a busy machine also by others, gets a further connection, which is closed afterwards.
    assert peak.most - Counter({"tenure duties": peak.most["tenure duties"] - 1}) == expected
    await until(lambda: Counter(name for (name,) in queue.sql(OURS)), is_=expected)


async def test_a_worker_whose_process_was_killed_is_back_to_four(start, run_log, queue):
    worker = start()
    [child] = await serving(worker)
    queue.add("kills_itself", 1)
    await until(lambda: worker.said.count("ready: ") >= 2)
    assert [child] != worker.children()
    await until(lambda: sorted(name for (name,) in queue.sql(OURS)), is_=FOUR, within=30)


HANDS_ON = """
@app.job
async def hands_on(ctx: Context) -> str:
    return await (await quick.enqueue()).result(timeout=30)
"""


async def test_a_handler_that_enqueues_and_waits_shares_the_ears_of_its_process(start, run_log, queue, project):
    jobs = project / "jobs.py"
    jobs.write_text(jobs.read_text() + HANDS_ON)
    worker = start()
    await serving(worker)
    await queue.completed(*queue.add("hands_on"))
    await until(
        lambda: sorted(name for (name,) in queue.sql(OURS)), is_=sorted([*FOUR, "tenure client", "tenure enqueue"]), within=30
    )
