"""A duty is done by one at a time, and a leader that was asleep can do no harm."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from tenure.leader.leader import Leader
from tenure.store import leases
from tenure.store.leases import Term
from tests.store.desk import Desk
from tests.store.locks import meanwhile, waits_for_a_lock
from tests.waiting import until

WRITES: dict[str, Any] = {
    "promote": lambda term: leases.promote(term, limit=10, channel="tenure"),
    "condemn": lambda term: leases.condemn_expired(term, reap=True),
    "expire": lambda term: leases.expire_jobs(term, limit=10, max_crashes=3, channel="tenure"),
    "keep history": lambda term: leases.keep_history(term, days_ahead=9, keep=0.0),
}


def lay_out_work(desk: Desk) -> None:
    """Something to do for every duty."""
    desk.enqueue({"delay": 60})
    desk.sql("update tenure.jobs set run_at = now() - interval '1 minute'")
    worker = desk.worker(ttl=600)
    desk.enqueue({})
    desk.claim(worker, leases={"work": 0})
    desk.sql("update tenure.workers set expires_at = now() - interval '1 minute'")


def everything(desk: Desk) -> list[Any]:
    return [
        desk.sql("select id, state, position from tenure.jobs order by id"),
        desk.sql("select id, died_at from tenure.workers"),
        desk.sql("select name, holder, term, expires_at from tenure.leases order by name"),
        desk.sql("select relname from pg_class where relname like 'history%' order by relname"),
    ]


@pytest.mark.parametrize("write", WRITES)
def test_a_leader_of_an_older_term_writes_nothing(desk, write):
    lay_out_work(desk)
    old = desk.term("duty")
    desk.end_term("duty")
    desk.term("duty")
    before = everything(desk)
    desk.run(WRITES[write](old))
    assert everything(desk) == before


@pytest.mark.parametrize("write", WRITES)
def test_a_leader_that_won_its_duty_again_writes_nothing_under_its_older_term(desk, write):
    lay_out_work(desk)
    holder = str(uuid4())
    old = desk.term("duty", holder)
    desk.end_term("duty")
    desk.term("duty", holder)
    before = everything(desk)
    desk.run(WRITES[write](old))
    assert everything(desk) == before


@pytest.mark.parametrize("write", WRITES)
def test_a_leader_whose_time_ran_out_writes_nothing_even_if_nobody_took_over(desk, write):
    lay_out_work(desk)
    term = desk.term("duty")
    desk.end_term("duty")
    before = everything(desk)
    desk.run(WRITES[write](term))
    assert everything(desk) == before


@pytest.mark.parametrize("write", WRITES)
def test_nobody_writes_in_the_name_of_another(desk, write):
    lay_out_work(desk)
    term = desk.term("duty")
    before = everything(desk)
    desk.run(WRITES[write](Term(term.duty, str(uuid4()), term.term, term.ttl)))
    desk.run(WRITES[write](Term("other duty", term.holder, term.term, term.ttl)))
    desk.run(WRITES[write](Term(term.duty, term.holder, term.term + 1, term.ttl)))
    assert everything(desk) == before


@pytest.mark.parametrize("write", ["promote", "condemn", "expire"])
def test_the_leader_of_the_current_term_does_write(desk, write):
    lay_out_work(desk)
    term = desk.term("duty")
    before = everything(desk)[:2]
    desk.run(WRITES[write](term))
    assert everything(desk)[:2] != before


async def test_a_take_over_waits_for_the_write_under_way(dsn, desk, other):
    lay_out_work(desk)
    term = desk.term("duty", ttl=0.2)
    with Desk(dsn) as third:
        with other.connection.transaction():
            assert other.run(WRITES["promote"](term))[0][:2] == (True, 1)
            await until(lambda: desk.sql("select expires_at < clock_timestamp() from tenure.leases"), is_=[(True,)])
            taken = meanwhile(lambda: third.run(leases.acquire(str(uuid4()), [("duty", 60.0)])))
            await waits_for_a_lock(desk)
        assert json.loads(taken()[0][0]) == {"duty": 2}


def test_the_term_grows_with_every_holder(desk):
    terms = []
    for _ in range(3):
        terms.append(desk.term("duty").term)
        desk.end_term("duty")
    assert terms == [1, 2, 3]


def test_a_duty_that_is_held_is_not_given_and_the_wait_is_told(desk):
    desk.term("stager", ttl=60)
    [(won, next_free)] = desk.run(leases.acquire(str(uuid4()), [("stager", 10.0), ("reaper", 10.0)]))
    assert json.loads(won) == {"reaper": 1}
    assert 50 < next_free <= 60


async def test_two_at_the_same_time_do_not_both_win(dsn, desk, other):
    with Desk(dsn) as third:
        with other.connection.transaction():
            [(first, _)] = other.run(leases.acquire(str(uuid4()), [("duty", 60.0)]))
            second = meanwhile(lambda: third.run(leases.acquire(str(uuid4()), [("duty", 60.0)])))
            await waits_for_a_lock(desk)
        assert json.loads(first) == {"duty": 1}
        assert json.loads(second()[0][0]) == {}


def test_only_the_holder_of_the_term_can_release_it(desk):
    term = desk.term("duty")
    desk.run(leases.release(str(uuid4()), [term], channel="tenure"))
    desk.run(leases.release(term.holder, [Term(term.duty, term.holder, term.term + 1, term.ttl)], channel="tenure"))
    assert desk.sql("select expires_at > now() from tenure.leases") == [(True,)]
    desk.run(leases.release(term.holder, [term], channel="tenure"))
    assert desk.sql("select expires_at > clock_timestamp() from tenure.leases") == [(False,)]


async def test_two_leaders_share_the_duties_without_sharing_one(place, desk):
    leaders = [Leader(place) for _ in range(2)]
    for leader in leaders:
        leader.start()
    await until(lambda: sum(len(leader.duties_held) for leader in leaders), is_=6)
    assert sorted(duty for leader in leaders for duty in leader.duties_held) == [
        "cleaner",
        "cron",
        "doctor",
        "reaper",
        "rollup",
        "stager",
    ]
    first = next(leader for leader in leaders if leader.duties_held)
    second = next(leader for leader in leaders if leader is not first)
    await first.stop()
    second.hear("free")
    await until(lambda: second.duties_held, is_=["cleaner", "cron", "doctor", "reaper", "rollup", "stager"])
    assert dict(desk.sql("select name, holder::text from tenure.leases")) == dict.fromkeys(second.duties_held, second.holder)
    await second.stop()


async def test_a_leader_that_lost_its_term_notices_and_stands_again(place, desk):
    leader = Leader(place)
    leader.start()
    await until(lambda: leader.duties_held, is_=["cleaner", "cron", "doctor", "reaper", "rollup", "stager"])
    desk.sql("update tenure.leases set holder = gen_random_uuid(), term = term + 1, expires_at = now() + interval '1 second'")
    leader.hear("")
    await until(lambda: desk.sql("select holder::text, term from tenure.leases where name = 'stager'"), is_=[(leader.holder, 3)])
    await leader.stop()
