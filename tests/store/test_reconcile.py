"""Schedules are what code declares, for any number of processes that start in any order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from tenure.model.ids import uuid7
from tenure.model.schedules import schedule
from tenure.model.ticks import PlannedTick, ScheduleMove
from tenure.store import schedules
from tests.store.database import Database
from tests.store.locks import meanwhile, waits_for_a_lock

OWNER = "shop:app"


def declared(name: str = "s", **options: Any) -> dict[str, Any]:
    if "cron" not in options:
        options = {"every": "60s", **options}
    return schedule(**{"name": name, "kind": "work", **options}).to_json()


def tell(database: Database, *given: dict[str, Any], owner: str = OWNER, kinds: Sequence[str] = ("work",)) -> dict[str, str]:
    query = schedules.reconcile(owner, given, supervisor_id=str(uuid4()), kinds=kinds)
    return {name: what for name, what, _ in database.run(query)}


def row(database: Database, *columns: str, name: str = "s") -> tuple[Any, ...]:
    [found] = database.sql(f"select {', '.join(columns)} from tenure.schedules where name = %s", name)
    return found


def planned(database: Database, name: str = "s") -> None:
    """As the leader leaves it."""
    database.sql("update tenure.schedules set next_at = now() + interval '1 minute' where name = %s", name)


def test_new_ones_begin_now_and_the_same_again_changes_nothing(database):
    assert tell(database, declared(), declared("t", cron="0 9 * * *")) == {"s": "created", "t": "created"}
    planned(database)
    before = database.sql("select * from tenure.schedules order by name")
    assert tell(database, declared("t", cron="0 9 * * *"), declared()) == {}
    assert database.sql("select * from tenure.schedules order by name") == before
    assert row(database, "owner", "now() - since < interval '1 minute'", "retired_at") == (OWNER, True, None)


def test_what_changed_but_for_its_times_keeps_its_next_time_and_its_pause(database):
    tell(database, declared())
    planned(database)
    database.sql("update tenure.schedules set paused_at = now(), paused_by = 'ann'")
    before = row(database, "since", "next_at", "paused_at", "paused_by")
    assert tell(database, declared(input={"n": 2}, queue="mail")) == {"s": "changed"}
    assert row(database, "since", "next_at", "paused_at", "paused_by") == before
    assert row(database, "input", "queue") == ({"n": 2}, "mail")


def test_with_other_times_only_the_last_minute_still_counts(database):
    tell(database, declared())
    planned(database)
    database.sql("update tenure.schedules set since = now() - interval '1 day'")
    assert tell(database, declared(every="30s")) == {"s": "changed"}
    assert row(database, "next_at", "now() - since between interval '1 minute' and interval '2 minutes'") == (None, True)
    database.sql("update tenure.schedules set since = now() - interval '10 seconds'")
    before = row(database, "since")
    tell(database, declared())
    assert row(database, "since") == before


def test_what_the_code_does_not_declare_any_more_is_retired_and_stays(database):
    tell(database, declared(), declared("t"))
    planned(database)
    assert tell(database, declared("t")) == {"s": "retired"}
    assert row(database, "retired_at is not null", "next_at") == (True, None)
    assert tell(database, declared("t")) == {}


def test_a_schedule_declared_again_soon_was_never_retired_and_one_declared_late_starts_again(database):
    """Soon: old code started among new."""
    tell(database, declared())
    database.sql("update tenure.schedules set since = now() - interval '5 minutes'")
    before = row(database, "since")
    tell(database)
    assert tell(database, declared()) == {"s": "restored"}
    assert row(database, "since", "retired_at", "next_at") == (*before, None, None)
    tell(database)
    database.sql("update tenure.schedules set retired_at = now() - interval '1 hour'")
    assert tell(database, declared()) == {"s": "restored"}
    assert row(database, "now() - since < interval '1 minute'", "retired_at") == (True, None)


def test_apps_do_not_retire_each_others_nor_what_was_made_by_hand(database):
    database.run(schedules.create(schedule(name="hand", kind="work", every="60s"), paused=False, by="ann"))
    tell(database, declared("mine"))
    tell(database, declared("yours"), owner="other:app")
    assert tell(database) == {"mine": "retired"}
    assert database.sql("select name from tenure.schedules where retired_at is null order by name") == [("hand",), ("yours",)]


def test_the_app_that_declares_a_name_owns_it_and_it_continues_as_it_was(database):
    tell(database, declared())
    planned(database)
    before = row(database, "since", "next_at")
    assert database.run(schedules.reconcile("new:app", [declared()], supervisor_id=str(uuid4()), kinds=["work"])) == [
        ("s", "taken", OWNER)
    ]
    assert row(database, "owner", "since", "next_at") == ("new:app", *before)
    assert tell(database) == {}  # the old one has nothing to retire any more


async def test_two_that_start_at_once_make_one_of_each(dsn, database, other):
    given = [declared("a"), declared("b")]
    with Database(dsn) as third:
        with other.connection.transaction():
            assert tell(other, *given) == {"a": "created", "b": "created"}
            second = meanwhile(lambda: tell(third, *given))
            await waits_for_a_lock(database)
        assert second() == {}
    assert database.sql("select count(*) from tenure.schedules") == [(2,)]


async def test_old_and_new_code_that_start_at_once_do_not_wait_in_a_circle(dsn, database, other):
    tell(database, declared("a"), declared("b"))
    with Database(dsn) as third:
        with other.connection.transaction():
            tell(other, declared("b"))
            second = meanwhile(lambda: tell(third, declared("a")))
            await waits_for_a_lock(database)
        assert second() == {"a": "restored", "b": "retired"}
    assert database.sql("select name from tenure.schedules where retired_at is null") == [("a",)]


async def test_a_tick_under_way_is_waited_for_and_a_declaration_that_came_first_counts(dsn, database, other):
    """The record names the version that it read, so a changed schedule is checked again."""
    tell(database, declared())
    term = database.term("cron")
    [(version,)] = database.sql("select version::text from tenure.schedules")
    planned_at = datetime(2031, 1, 1, tzinfo=UTC)
    tick = PlannedTick(planned_at=planned_at, job_id=uuid7())
    move = ScheduleMove(name="s", version=version, since=planned_at, next_at=planned_at + timedelta(minutes=1), ticks=[tick])
    with Database(dsn) as third:
        with other.connection.transaction():
            tell(other, declared(every="45s"))
            recorded = meanwhile(lambda: third.run(schedules.record_ticks(term, [move])))
            await waits_for_a_lock(database)
        assert recorded()[0][:3] == (True, 0, 0)
    assert database.sql("select count(*) from tenure.ticks") == [(0,)]
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


# Several processes of one app, and several apps of one name


class App:
    """A process with this code: declared, with a living worker."""

    def __init__(self, database: Database, *names: str, kinds: Sequence[str] = ("work", "mail"), owner: str = OWNER) -> None:
        self.database, self.id, self.owner, self.kinds = database, str(uuid4()), owner, kinds
        self.given = [declared(name, kind=kinds[0]) for name in names]

    def start(self) -> dict[str, str]:
        names = [schedule["name"] for schedule in self.given]
        self.database.run(schedules.declare_app(self.id, self.owner, kinds=self.kinds, schedules=names))
        done = self.database.run(schedules.reconcile(self.owner, self.given, supervisor_id=self.id, kinds=self.kinds))
        self.worker = self.database.worker(supervisor=self.id)
        return {name: what for name, what, _ in done}

    def stop(self) -> None:
        self.database.sql("delete from tenure.workers where id = %s", self.worker)
        self.database.run(schedules.withdraw_app(self.id))

    def crash(self) -> None:
        """Earlier."""
        self.database.sql("delete from tenure.workers where id = %s", self.worker)
        ago = "clock_timestamp() - interval '2 minutes'"
        self.database.sql(f"update tenure.declarations set declared_at = {ago} where supervisor_id = %s", self.id)


def active(database: Database) -> list[str]:
    return [name for (name,) in database.sql("select name from tenure.schedules where retired_at is null order by name")]


def sweep(database: Database) -> list[tuple[str, str]]:
    """What the leader does every minute."""
    [answer] = database.fetch(schedules.retire(database.term("cron", OWNER_ID)))
    assert answer.holds
    return answer.retired


OWNER_ID = str(uuid4())


def test_two_apps_of_one_name_do_not_retire_each_others_schedules(database):
    one, other = App(database, "a", kinds=["a", "common"]), App(database, "b", kinds=["b", "c", "d"])
    assert one.start() == {"a": "created"}
    assert other.start() == {"b": "created", "a": "foreign"}
    one.stop()
    other.stop()
    assert App(database, "b", kinds=["b", "c", "d"]).start() == {"a": "foreign"}
    sweep(database)
    assert active(database) == ["a", "b"]


def test_a_deploy_that_removes_a_schedule_retires_it(database):
    old = App(database, "a", "b")
    old.start()
    old.stop()
    assert App(database, "b").start() == {"a": "retired"}
    assert active(database) == ["b"]


def test_a_process_that_crashed_does_not_keep_its_schedules_alive(database):
    old = App(database, "a", "b")
    old.start()
    old.crash()
    assert App(database, "b").start() == {"a": "retired"}


def test_two_versions_side_by_side_do_not_flap_and_the_last_of_the_old_one_takes_its_schedules_with_it(database):
    old, new = App(database, "both", "old"), App(database, "both", "new", kinds=["work", "mail", "more"])
    old.start()
    assert new.start() == {"new": "created"}
    again = App(database, "both", "old")  # a process of the old version is restarted
    assert again.start() == {}
    assert sweep(database) == []
    assert active(database) == ["both", "new", "old"]
    old.stop()
    assert sweep(database) == []
    again.stop()
    assert sweep(database) == [("old", "shop:app")]
    assert active(database) == ["both", "new"]


def test_an_app_that_is_down_keeps_its_schedules(database):
    app = App(database, "a")
    app.start()
    app.stop()
    assert sweep(database) == []
    App(database, "x", owner="other:app").start()
    assert sweep(database) == []
    assert active(database) == ["a", "x"]


def test_the_kinds_of_an_app_are_noted_without_a_change_of_its_schedules(database):
    App(database, "a", kinds=["work", "mail"]).start()
    before = row(database, "version", "changed_at", name="a")
    assert App(database, "a", kinds=["work", "mail", "new"]).start() == {}
    assert row(database, "version", "changed_at", name="a") == before
    assert row(database, "app_kinds", name="a") == (["mail", "new", "work"],)


def test_declarations_of_processes_that_are_gone_for_long_are_removed(database):
    old = App(database, "a")
    old.start()
    old.crash()
    database.sql("update tenure.declarations set declared_at = now() - interval '2 days'")
    App(database, "a").start()
    assert database.sql("select count(*) from tenure.declarations") == [(1,)]
