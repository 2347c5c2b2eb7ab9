"""The procedure of docs/operations/upgrades.md under load: workers and clients of two versions on one database.

No job is lost, none fails, none runs a second time except as planned.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.store.clean import bare_dsn
from tests.store.database import Database
from tests.upgrades.code_version import CodeVersion, installed_code
from tests.upgrades.earlier_code import EarlierState, earlier_code, earlier_states
from tests.upgrades.fleet import Fleet, complaints, stop
from tests.upgrades.later_code import later_code
from tests.waiting import until

__all__ = ["bare_dsn"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
STATES = earlier_states()
# To a later version, and from the version before this one and the oldest one that can be upgraded, if there are any.
UPGRADES = {"to_a_later_version": None} | {f"from_version_{state.version}": state for state in STATES[:1] + STATES[1:][-1:]}


@pytest.fixture(params=UPGRADES.values(), ids=UPGRADES)
def versions(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[CodeVersion, CodeVersion]:
    """The old code and the new code."""
    state: EarlierState | None = request.param
    if state is None:
        return installed_code(), later_code(tmp_path / "later")
    return earlier_code(state, tmp_path / "earlier"), installed_code()


@pytest.fixture
def project_with_jobs(project: Path) -> Path:
    shutil.copy(HERE / "jobs_for_upgrades.py", project / "jobs.py")
    shutil.copy(HERE / "enqueuing_client.py", project / "client.py")
    return project


async def test_a_rolling_upgrade_under_load_loses_and_fails_no_job(versions, project_with_jobs, bare_dsn):
    old_code, new_code = versions
    assert old_code.tenure("migrate", "--dsn", bare_dsn).returncode == 0
    with Fleet(project_with_jobs, bare_dsn, old_code, new_code) as fleet:
        await upgrade(fleet, old_code, new_code, bare_dsn)


async def upgrade(fleet: Fleet, old_code: CodeVersion, new_code: CodeVersion, dsn: str) -> None:
    fleet.database.sql("create table effects (job_id uuid not null)")
    assert fleet.database.sql("select max(version) from tenure.migrations") == [(old_code.schema_version,)]
    removes = any("_post_" in label for label in pending_migrations(new_code, dsn))

    old = [await fleet.start_worker(name, old=True) for name in ("old-1", "old-2")]
    before = await fleet.start_client("before", old=True)
    await fleet.work(before)

    # 1. Add what the new code needs, while the old code works.
    migrated = new_code.tenure("migrate", "--phase", "pre", "--dsn", dsn)
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
    refused = new_code.tenure("migrate", "--phase", "post", "--dsn", dsn)
    assert (refused.returncode, "still run code of an older version" in refused.stderr) == ((1, True) if removes else (0, False))
    for worker in old:
        await stop(worker)
    before.stop()

    # 3. Remove what only the old code needed.
    removed = new_code.tenure("migrate", "--phase", "post", "--dsn", dsn)
    assert removed.returncode == 0, removed.stderr
    assert fleet.database.sql("select max(version) from tenure.migrations") == [(new_code.schema_version,)]
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


def pending_migrations(code: CodeVersion, dsn: str) -> list[str]:
    status = json.loads(code.tenure("migrate", "--status", "--json", "--dsn", dsn).stdout)
    return [label for phase in ("pre", "post") for label in status["pending"][phase]]


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
