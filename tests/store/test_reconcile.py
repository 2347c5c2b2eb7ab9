"""What code declares is what there is: whoever starts, in which order, and however many at once."""

from __future__ import annotations

from typing import Any

from tenure.model.schedules import schedule
from tenure.store import schedules
from tests.store.desk import Desk
from tests.store.locks import meanwhile, waits_for_a_lock

OWNER = "shop:app"


def declared(name: str = "s", **options: Any) -> dict[str, Any]:
    if "cron" not in options:
        options = {"every": "60s", **options}
    return schedule(**{"name": name, "kind": "work", **options}).to_json()


def tell(desk: Desk, *given: dict[str, Any], owner: str = OWNER) -> dict[str, str]:
    return {name: what for name, what, _ in desk.run(schedules.reconcile(owner, given))}


def row(desk: Desk, *columns: str, name: str = "s") -> tuple[Any, ...]:
    [found] = desk.sql(f"select {', '.join(columns)} from tenure.schedules where name = %s", name)
    return found


def planned(desk: Desk, name: str = "s") -> None:
    """As the leader leaves it."""
    desk.sql("update tenure.schedules set next_at = now() + interval '1 minute' where name = %s", name)


def test_new_ones_begin_now_and_the_same_again_changes_nothing(desk):
    assert tell(desk, declared(), declared("t", cron="0 9 * * *")) == {"s": "created", "t": "created"}
    planned(desk)
    before = desk.sql("select * from tenure.schedules order by name")
    assert tell(desk, declared("t", cron="0 9 * * *"), declared()) == {}
    assert desk.sql("select * from tenure.schedules order by name") == before
    assert row(desk, "owner", "now() - since < interval '1 minute'", "retired_at") == (OWNER, True, None)


def test_what_changed_but_for_its_times_keeps_its_next_time_and_its_pause(desk):
    tell(desk, declared())
    planned(desk)
    desk.sql("update tenure.schedules set paused_at = now(), paused_by = 'ann'")
    before = row(desk, "since", "next_at", "paused_at", "paused_by")
    assert tell(desk, declared(input={"n": 2}, queue="mail")) == {"s": "changed"}
    assert row(desk, "since", "next_at", "paused_at", "paused_by") == before
    assert row(desk, "input", "queue") == ({"n": 2}, "mail")


def test_with_other_times_only_the_last_minute_still_counts(desk):
    tell(desk, declared())
    planned(desk)
    desk.sql("update tenure.schedules set since = now() - interval '1 day'")
    assert tell(desk, declared(every="30s")) == {"s": "changed"}
    assert row(desk, "next_at", "now() - since between interval '1 minute' and interval '2 minutes'") == (None, True)
    desk.sql("update tenure.schedules set since = now() - interval '10 seconds'")
    before = row(desk, "since")
    tell(desk, declared())
    assert row(desk, "since") == before


def test_what_the_code_does_not_declare_any_more_is_retired_and_stays(desk):
    tell(desk, declared(), declared("t"))
    planned(desk)
    assert tell(desk, declared("t")) == {"s": "retired"}
    assert row(desk, "retired_at is not null", "next_at") == (True, None)
    assert tell(desk, declared("t")) == {}


def test_what_comes_back_soon_has_never_gone_and_what_comes_back_late_begins_anew(desk):
    """Soon: old code started among new."""
    tell(desk, declared())
    desk.sql("update tenure.schedules set since = now() - interval '5 minutes'")
    before = row(desk, "since")
    tell(desk)
    assert tell(desk, declared()) == {"s": "back"}
    assert row(desk, "since", "retired_at", "next_at") == (*before, None, None)
    tell(desk)
    desk.sql("update tenure.schedules set retired_at = now() - interval '1 hour'")
    assert tell(desk, declared()) == {"s": "back"}
    assert row(desk, "now() - since < interval '1 minute'", "retired_at") == (True, None)


def test_apps_do_not_retire_each_others_nor_what_was_made_by_hand(desk):
    desk.run(schedules.create(schedule(name="hand", kind="work", every="60s"), paused=False, by="ann"))
    tell(desk, declared("mine"))
    tell(desk, declared("yours"), owner="other:app")
    assert tell(desk) == {"mine": "retired"}
    assert desk.sql("select name from tenure.schedules where retired_at is null order by name") == [("hand",), ("yours",)]


def test_whoever_declares_a_name_owns_it_and_it_goes_on_as_it_was(desk):
    tell(desk, declared())
    planned(desk)
    before = row(desk, "since", "next_at")
    assert desk.run(schedules.reconcile("new:app", [declared()])) == [("s", "taken", OWNER)]
    assert row(desk, "owner", "since", "next_at") == ("new:app", *before)
    assert tell(desk) == {}  # the old one has nothing to retire any more


async def test_two_that_start_at_once_make_one_of_each(dsn, desk, other):
    given = [declared("a"), declared("b")]
    with Desk(dsn) as third:
        with other.connection.transaction():
            assert tell(other, *given) == {"a": "created", "b": "created"}
            second = meanwhile(lambda: tell(third, *given))
            await waits_for_a_lock(desk)
        assert second() == {}
    assert desk.sql("select count(*) from tenure.schedules") == [(2,)]


async def test_old_and_new_code_that_start_at_once_do_not_wait_in_a_circle(dsn, desk, other):
    tell(desk, declared("a"), declared("b"))
    with Desk(dsn) as third:
        with other.connection.transaction():
            tell(other, declared("b"))
            second = meanwhile(lambda: tell(third, declared("a")))
            await waits_for_a_lock(desk)
        assert second() == {"a": "back", "b": "retired"}
    assert desk.sql("select name from tenure.schedules where retired_at is null") == [("a",)]


async def test_a_tick_under_way_is_waited_for_and_a_declaration_that_came_first_counts(dsn, desk, other):
    """The record names the version that it read, so a changed schedule is looked at anew."""
    tell(desk, declared())
    term = desk.term("cron")
    [(version,)] = desk.sql("select version::text from tenure.schedules")
    tick = {
        "planned_at": "2031-01-01T00:00:00+00:00",
        "times": 1,
        "missed": False,
        "job_id": "0198f1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
    }
    move = {
        "name": "s",
        "version": version,
        "since": "2031-01-01T00:00:00+00:00",
        "next_at": "2031-01-01T00:01:00+00:00",
        "ticks": [tick],
    }
    with Desk(dsn) as third:
        with other.connection.transaction():
            tell(other, declared(every="45s"))
            recorded = meanwhile(lambda: third.run(schedules.record_ticks(term, [move], channel="tenure")))
            await waits_for_a_lock(desk)
        assert recorded()[0][:3] == (True, 0, 0)
    assert desk.sql("select count(*) from tenure.ticks") == [(0,)]
    assert desk.sql("select count(*) from tenure.jobs") == [(0,)]
