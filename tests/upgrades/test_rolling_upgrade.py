"""The procedure of docs/operations/upgrades.md under load: workers and clients of two versions on one database.

No job is lost, none fails, none runs a second time except as planned.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.test_cli import tenure
from tests.store.clean import bare_dsn
from tests.store.database import Database
from tests.upgrades.earlier_code import EarlierCode, earlier_states, unpack
from tests.upgrades.fleet import Fleet, complaints, stop
from tests.waiting import until

__all__ = ["bare_dsn"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
STATES = earlier_states()
# The version before this one, and the oldest one that can be upgraded.
TESTED = STATES[:1] + STATES[1:][-1:]


@pytest.fixture
def fleet_after(project: Path, bare_dsn: str, tmp_path: Path) -> Iterator[Callable[[EarlierCode], Fleet]]:
    shutil.copy(HERE / "jobs_for_upgrades.py", project / "jobs.py")
    shutil.copy(HERE / "enqueuing_client.py", project / "client.py")
    with ExitStack() as stack:
        yield lambda earlier: stack.enter_context(Fleet(project, bare_dsn, earlier))


@pytest.mark.skipif(not TESTED, reason="no earlier code: this is not a git checkout, or one without its history")
@pytest.mark.parametrize("state", TESTED, ids=[f"from_version_{state.version}" for state in TESTED])
async def test_a_rolling_upgrade_under_load_loses_and_fails_no_job(state, fleet_after, bare_dsn, tmp_path):
    earlier = unpack(state, tmp_path / "earlier")
    assert earlier.tenure("migrate", "--dsn", bare_dsn).returncode == 0
    fleet = fleet_after(earlier)
    fleet.database.sql("create table effects (job_id uuid not null)")
    assert fleet.database.sql("select max(version) from tenure.migrations") == [(state.version,)]

    old = [await fleet.start_worker(name, old=True) for name in ("old-1", "old-2")]
    before = await fleet.start_client("before", old=True)
    await fleet.work(before)

    # 1. Add what the new code needs, while the old code works.
    migrated = tenure("migrate", "--phase", "pre", "--dsn", bare_dsn)
    assert migrated.returncode == 0, migrated.stderr
    await fleet.work(before)

    # 2. New workers and clients beside the old ones, then instead of them.
    new = [await fleet.start_worker("new-1", old=False)]
    after = await fleet.start_client("after", old=False)
    await fleet.work(before, after)
    await fleet.until_it_works("new-1")
    await stop(old.pop())

    # An old worker that restarts meanwhile, or a deploy that is rolled back.
    old.append(await fleet.start_worker("old-again", old=True))
    await fleet.work(before, after)
    await fleet.until_it_works("old-again")

    new.append(await fleet.start_worker("new-2", old=False))
    for worker in old:
        await stop(worker)
    before.stop()

    # 3. Remove what only the old code needed.
    removed = tenure("migrate", "--phase", "post", "--dsn", bare_dsn)
    assert removed.returncode == 0, removed.stderr
    await fleet.work(after)
    after.stop()

    ids = before.ids + after.ids
    await until(lambda: fleet.ended(ids), is_={"completed": len(ids)}, within=60)
    # The jobs that these jobs and the schedule have created, too.
    await until(lambda: fleet.database.sql("select count(*) from tenure.jobs where kind <> 'tick'"), is_=[(0,)], within=60)
    for worker in new:
        await stop(worker)
    check_history(fleet.database)
    assert [complaint for worker in fleet.workers for complaint in complaints(worker)] == []


def check_history(database: Database) -> None:
    """Each job ran once, except as planned, and has created what it should."""
    ran = database.sql("select distinct kind, state, attempt, crashes from tenure.history")
    assert {row[1:] for row in ran if row[0] != "fails_once"} == {("completed", 1, 0)}
    assert {row[1:] for row in ran if row[0] == "fails_once"} == {("completed", 2, 0)}
    counted = dict(database.sql("select kind, count(*) from tenure.history group by 1"))
    # Four are enqueued by the clients in each turn, with one that enqueues another; each chain ends with one.
    assert counted["quick"] == 5 * counted["enqueues_another"] + counted.get("starts_chain", 0)
    assert database.sql("select count(*), count(distinct job_id) from effects") == [(counted["writes_once"],) * 2]
    of_schedule = "select t.job_id from tenure.ticks t where t.job_id is not null"
    assert database.sql(f"{of_schedule} and not exists (select from tenure.all_jobs a where a.id = t.job_id)") == []
