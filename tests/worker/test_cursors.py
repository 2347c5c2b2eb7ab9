"""The rules by which a worker looks past what is gone, and never past a job."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tenure.store.claim_replies import ClaimReply, JobPosition
from tenure.worker.claim.cursors import FULL_SWEEP_EVERY, SWEEP_EVERY, Cursors, Lane
from tests.worker.simulated import SimulatedStore


def reply(
    *, position: int = 0, xmin: int = 0, xid: int = 0, picked: int = 0, returns: dict[str, int] | None = None, holds: bool = True
) -> ClaimReply:
    return ClaimReply(holds, returns or {}, [], picked, position, xmin, xid)


def starts(cursors: Cursors) -> dict[tuple[str, int], int]:
    return {(queue, priority): start for queue, known in cursors._starts.items() for priority, start in known.items()}


def test_a_new_worker_looks_everywhere_from_the_start():
    assert Cursors(["mail"]).plan(0.0).lanes == [Lane("mail", 100, 0, 0)]


def test_a_known_priority_is_a_lane_of_its_own_and_the_gaps_stay():
    cursors = Cursors(["mail"])
    plan = cursors.plan(0.0)
    cursors.learn(plan, [JobPosition("mail", 50, 7), JobPosition("mail", 50, 9)], 2, reply(position=9), now=0.0, took=0.0)
    assert cursors.plan(0.1).lanes == [Lane("mail", 100, 51, 0), Lane("mail", 50, 50, 10), Lane("mail", 49, 0, 0)]


def test_the_highest_and_the_lowest_priority_leave_no_empty_gap():
    cursors = Cursors(["mail"])
    cursors.add_priority("mail", 100)
    cursors.add_priority("mail", 0)
    assert cursors.plan(0.0).lanes == [Lane("mail", 100, 100, 0), Lane("mail", 99, 1, 0), Lane("mail", 0, 0, 0)]


def test_lanes_of_all_queues_go_by_priority_and_queues_take_turns():
    cursors = Cursors(["mail", "maps"])
    for queue in ("mail", "maps"):
        cursors.add_priority(queue, 50)
    first, second = cursors.plan(0.0), cursors.plan(0.1)
    assert [lane.high for lane in first.lanes] == [100, 100, 50, 50, 49, 49]
    assert [lane.queue for lane in first.lanes] == ["mail", "maps"] * 3
    assert [lane.queue for lane in second.lanes] == ["maps", "mail"] * 3


def test_a_lane_read_to_its_end_begins_after_what_was_known_before():
    """All other rows there were not for this worker."""
    cursors = Cursors(["mail"])
    cursors.add_priority("mail", 50)
    for second, position in enumerate((40, 60, 80)):
        cursors.learn(cursors.plan(second), [], 5, reply(position=position), now=second, took=0.0)
    assert starts(cursors) == {("mail", 50): 61}


def test_what_became_known_a_moment_ago_is_not_passed_by_yet():
    """A transaction that took its position then may be about to commit; while workers are busy, the sweep comes late."""
    cursors = Cursors(["mail"])
    cursors.add_priority("mail", 50)
    for now, position in ((0.0, 40), (1.0, 60), (1.1, 80), (1.15, 90)):
        cursors.learn(cursors.plan(now), [], 5, reply(position=position), now=now, took=0.0)
    assert starts(cursors) == {("mail", 50): 41}
    cursors.learn(cursors.plan(1.25), [], 5, reply(position=95), now=1.25, took=0.0)
    assert starts(cursors) == {("mail", 50): 61}


def test_a_lane_that_filled_the_claim_is_not_passed():
    cursors = Cursors(["mail"])
    cursors.add_priority("mail", 50)
    cursors.learn(cursors.plan(0.0), [], 5, reply(position=40), now=0.0, took=0.0)
    cursors.learn(cursors.plan(0.1), [JobPosition("mail", 50, 10)], 1, reply(position=60), now=0.1, took=0.0)
    assert starts(cursors) == {("mail", 50): 11}


def test_a_paused_queue_is_not_passed():
    cursors = Cursors(["mail"])
    cursors.add_priority("mail", 50)
    for _ in range(2):
        cursors.learn(cursors.plan(0.0), [], 5, ClaimReply(True, {}, ["mail"], 0, 40, 0, 0), now=0.0, took=0.0)
    assert starts(cursors) == {("mail", 50): 0}


def test_a_job_that_was_locked_and_not_claimed_sends_the_cursors_back():
    cursors = Cursors(["mail"])
    cursors.learn(cursors.plan(0.0), [JobPosition("mail", 50, 9)], 1, reply(position=9), now=0.0, took=0.0)
    cursors.learn(cursors.plan(0.1), [JobPosition("mail", 50, 12)], 5, reply(position=12, picked=2), now=0.1, took=0.0)
    assert starts(cursors) == {("mail", 50): 0}


def test_returned_jobs_send_the_cursors_of_their_queue_back():
    cursors = Cursors(["mail", "maps"])
    for queue in ("mail", "maps"):
        cursors.learn(cursors.plan(0.0), [JobPosition(queue, 50, 9)], 1, reply(position=9), now=0.0, took=0.0)
    cursors.learn(cursors.plan(0.1), [], 5, reply(position=9, returns={"mail": 1, "other": 3}), now=0.1, took=0.0)
    assert starts(cursors) == {("mail", 50): 0, ("maps", 50): 10}


def test_a_claim_that_was_not_allowed_teaches_nothing():
    cursors = Cursors(["mail"])
    cursors.add_priority("mail", 50)
    for _ in range(3):
        cursors.learn(cursors.plan(0.0), [], 5, reply(position=40, holds=False), now=0.0, took=0.0)
    assert starts(cursors) == {("mail", 50): 0}


def test_a_worker_with_all_slots_filled_sweeps_now_and_then_and_from_the_very_start_seldom():
    cursors = Cursors(["mail"])
    cursors.learn(cursors.plan(0.0), [JobPosition("mail", 50, 9)], 1, reply(position=9), now=0.0, took=0.0)
    assert cursors.plan(SWEEP_EVERY * 0.9).lanes[1] == Lane("mail", 50, 50, 10)
    assert cursors.plan(SWEEP_EVERY).lanes[1] == Lane("mail", 50, 50, 0)
    assert not cursors.plan(FULL_SWEEP_EVERY - 0.1).full
    assert cursors.plan(FULL_SWEEP_EVERY).full


@pytest.mark.parametrize("slots", [1, 3], ids=["all slots filled", "slots to spare"])
def test_a_late_commit_is_found_by_the_next_sweep_after_any_number_of_claims(slots):
    store, cursors = SimulatedStore(), Cursors(["mail"])
    cursors._next_full_sweep = math.inf
    late = store.begin()
    job = store.enqueue(late, "mail", 50, "a")
    for turn in range(25):
        if turn == 12:
            store.commit(late)
        soon = store.begin()
        store.enqueue(soon, "mail", 50, "a")
        store.commit(soon)
        store.claim(cursors, {"a"}, slots, 10.0 + turn * SWEEP_EVERY / 10)
    assert job.running


def test_a_sweep_that_filled_the_slots_continues_where_it_stopped():
    """A transaction that committed late with more jobs than there are slots: none of them may wait for a full sweep."""
    store, cursors = SimulatedStore(), Cursors(["mail"])
    cursors._next_full_sweep = math.inf
    late = store.begin()
    for _ in range(10):
        store.enqueue(late, "mail", 50, "a")
    soon = store.begin()
    store.enqueue(soon, "mail", 50, "a")
    store.commit(soon)
    assert len(store.claim(cursors, {"a"}, 2, 10.0)) == 1
    store.commit(late)
    claims = [len(store.claim(cursors, {"a"}, 2, 11.0 + turn / 10)) for turn in range(5)]
    assert claims == [2, 2, 2, 2, 2]


def test_a_sweep_whose_slots_were_filled_by_higher_priorities_still_reaches_the_lower():
    store, cursors = SimulatedStore(), Cursors(["mail"])
    cursors._next_full_sweep = math.inf
    late = store.begin()
    low = store.enqueue(late, "mail", 0, "a")
    soon = store.begin()
    store.enqueue(soon, "mail", 0, "a")
    store.commit(soon)
    store.claim(cursors, {"a"}, 2, 10.0)
    store.commit(late)
    busy = store.begin()
    for _ in range(4):
        store.enqueue(busy, "mail", 100, "a")
    store.commit(busy)
    for turn in range(4):
        store.claim(cursors, {"a"}, 2, 11.0 + SWEEP_EVERY * turn)
    assert low.running


def test_a_slow_full_sweep_is_repeated_later():
    cursors = Cursors(["mail"])
    cursors.learn(cursors.plan(0.0), [], 1, reply(), now=2.0, took=2.0)
    assert not cursors.plan(101.0).full
    assert cursors.plan(102.0).full


def floor_after(*seen: ClaimReply) -> int:
    """Of a worker that swept with each of these claims."""
    cursors = Cursors(["mail"])
    for told in seen:
        cursors.learn(replace(cursors.plan(0.0), sweep=True), [], 5, told, now=0.0, took=0.0)
    return cursors._floor.position


def test_the_floor_waits_for_every_transaction_that_was_under_way():
    """Number 90 is open and may hold any position up to 20."""
    under_way = [reply(position=10 * n, xmin=90, xid=100 + 5 * n) for n in range(1, 3)]
    assert floor_after(*under_way) == 0
    assert floor_after(*under_way, reply(position=30, xmin=90, xid=200)) == 0
    assert 0 < floor_after(*under_way, reply(position=30, xmin=150, xid=200)) <= 21


def test_the_floor_does_not_trust_a_position_that_was_read_after_the_claim_had_its_number():
    """Number 102 began while claim 101 was under way, holds one of the positions 11 to 20, and is still open."""
    during = reply(position=20, xmin=101, xid=101)
    assert floor_after(reply(position=10, xmin=100, xid=100), during, reply(position=20, xmin=102, xid=103)) <= 11


def test_the_floor_comes_through_a_long_transaction():
    long = [reply(position=n, xmin=50, xid=100 + n) for n in range(1, 1000)]
    over = [reply(position=n, xmin=100 + n, xid=100 + n) for n in range(1000, 1003)]
    assert floor_after(*long) == 0
    assert floor_after(*long, *over) >= 1000


def test_the_floor_is_never_above_what_was_known_when_the_last_but_one_claim_was_made():
    for count in range(2, 6):
        quiet = [reply(position=10 * n, xmin=100 * n, xid=100 * n) for n in range(1, count + 1)]
        assert floor_after(*quiet) <= 10 * (count - 1) + 1


@pytest.mark.parametrize("back", [{"position": 3, "xid": 30}, {"position": 60, "xid": 5}], ids=["position", "transaction"])
def test_when_positions_or_transactions_go_back_everything_is_looked_at_again(back):
    """As after a failover to a replica that lagged."""
    cursors = Cursors(["mail"])
    for n in range(5):
        plan = cursors.plan(float(n))
        cursors.learn(
            plan, [JobPosition("mail", 50, 50 + n)], 5, reply(position=50 + n, xmin=20 + n, xid=20 + n), now=float(n), took=0.0
        )
    assert starts(cursors)["mail", 50] > 3

    cursors.learn(cursors.plan(6.0), [], 5, reply(xmin=1, **back), now=6.0, took=0.0)

    assert starts(cursors)["mail", 50] <= 1
    assert cursors._floor.position == 0
