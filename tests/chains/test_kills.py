"""kill -9 of handlers, workers and the leader while chains continue and jobs are unblocked: nothing is lost or done twice."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress

import pytest

from tenure import Tenure
from tests.chains import kill_jobs
from tests.manager.worker_helpers import serving
from tests.processes import worker_process
from tests.store.database import Database
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CHAINS, SPREADS, WIDTH = 15, 3, 4
SUM = sum(range(1, kill_jobs.LINKS + 1))


@pytest.fixture
def start(project, dsn):
    shutil.copy(kill_jobs.__file__, project / "jobs.py")
    return lambda: worker_process(project, dsn, "--queues", "default", "--concurrency", "4")


def open_jobs(database: Database) -> list[tuple[str, str, int]]:
    return database.sql("select kind, state, count(*) from tenure.jobs group by 1, 2 order by 1, 2")


async def enqueue(app: Tenure, doomed: str) -> None:
    """One job kills its process. More would let jobs beside it reach three crashes, by chance."""
    links = [{"number": 1, "doomed": doomed == "link" and number == 0} for number in range(CHAINS)]
    chains = await app.enqueue_many([_call(app, "link", given) for given in links])
    for number in range(0, CHAINS, 5):
        await app.enqueue("join", {}, after=chains[number : number + 5])
    for number in range(SPREADS):
        await app.enqueue("spread", {"width": WIDTH, "doomed": doomed == "spread" and number == 0})


def _call(app: Tenure, kind: str, given: dict[str, object]) -> object:
    from tenure.client.named import call_by_name

    return call_by_name(app._runtime, kind, given, {})[0]


def held(database: Database) -> int:
    return database.sql("select count(*) from tenure.jobs where state = 'running'")[0][0]


@pytest.mark.parametrize("doomed", ["link", "spread"])
async def test_every_chain_ends_once_although_any_process_is_killed(start, app, database, doomed):
    await app.check()
    with start() as worker:
        children = await serving(worker)
        await enqueue(app, doomed)
        # The supervisor holds the duties: with it the resolver dies in the middle of its work.
        await until(lambda: database.sql("select count(*) from tenure.history") > [(20,)], within=60)
        os.kill(worker.pid, signal.SIGKILL)
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        held_at_the_end = held(database)
    with start() as worker:
        await serving(worker)
        await until(lambda: open_jobs(database), is_=[], within=200)
    await app.close()

    assert database.sql("select state, count(*) from tenure.history group by 1")[0][0] == "completed"
    # One tail for each chain, and as many links as the code makes.
    tails = database.sql(
        "select coalesce(chain_id, id), count(*) from tenure.history where next_id is null group by 1 having count(*) <> 1"
    )
    assert tails == []
    links = "select count(*) from tenure.history where kind = 'link' group by coalesce(chain_id, id)"
    assert {count for (count,) in database.sql(links)} == {kill_jobs.LINKS}
    # Each waiting job saw every output once.
    joined = database.sql("select output, count(*) from tenure.history where kind = 'join' group by 1 order by 1")
    assert dict(joined) == {5 * SUM: CHAINS // 5, WIDTH * SUM: SPREADS}
    assert database.sql("select count(*) from tenure.blocked where missing is not null") == [(0,)]
    # What a process held when it was killed alone, or together with its supervisor.
    [(requeued,)] = database.sql("select count(*) from tenure.incidents where what in ('crashed', 'lease_lost')")
    assert requeued >= max(1, held_at_the_end)
