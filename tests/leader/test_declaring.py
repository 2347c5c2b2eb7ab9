"""What an app's code declares, when processes of it start and stop."""

from __future__ import annotations

import pytest

from tenure import Tenure
from tenure.model.wakeup import Wakeup
from tests.waiting import until


def service(dsn: str, *names: str) -> Tenure:
    """All of them are `jobs.py` with `app = Tenure()`, without a name."""
    app = Tenure(dsn, name="jobs:app")
    for name in names:

        async def nightly() -> None:
            pass

        app.cron("0 3 * * *")(app.job(name=name)(nightly))
    return app


def active(database) -> list[str]:
    return [name for (name,) in database.sql("select name from tenure.schedules where retired_at is null order by name")]


def warnings(caplog: pytest.LogCaptureFixture) -> list[list[str]]:
    """The schedules of each warning."""
    return [record.schedules for record in caplog.records if record.levelname == "WARNING" and "`name`" in record.getMessage()]


async def test_two_services_of_one_name_keep_their_schedules_and_log_the_setting(dsn, database, caplog):
    async with service(dsn, "bill", "remind").running(), service(dsn, "resize", "purge").running():
        assert active(database) == ["bill", "purge", "remind", "resize"]
    async with service(dsn, "resize", "purge").running():
        assert active(database) == ["bill", "purge", "remind", "resize"]
    assert len(warnings(caplog)) == 2
    assert warnings(caplog)[0] == ["bill", "remind"]


async def test_a_schedule_that_is_removed_from_the_code_is_retired_by_the_next_start(dsn, database, caplog):
    async with service(dsn, "bill", "remind").running():
        pass
    async with service(dsn, "bill").running():
        assert active(database) == ["bill"]
    assert warnings(caplog) == []


async def test_the_leader_retires_what_the_last_process_of_an_older_version_took_with_it(dsn, database):
    async with service(dsn, "bill").running() as new:
        async with service(dsn, "bill", "remind").running():
            assert active(database) == ["bill", "remind"]
        new._leader._duties["cron"]._verify_at = 0.0  # it looks every minute
        await until(lambda: new._leader.on_wakeup(Wakeup.schedule_changed()) or active(database), is_=["bill"])


async def test_a_process_that_ends_in_order_withdraws_what_it_declared(dsn, database):
    async with service(dsn, "bill").running():
        assert database.sql("select owner, kinds, schedules from tenure.declarations") == [("jobs:app", ["bill"], ["bill"])]
    assert database.sql("select count(*) from tenure.declarations") == [(0,)]
