"""The scaling policy: a table of decisions, and what holds for all of them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.manager.policy import Bounds, Demand, Scaler

BOUNDS = Bounds(default_count=2, max_count=8, concurrency=10, target_wait=5.0, patience=3)
IDLE = Demand()


def decided(count: int, demand: Demand, calm: int = 0, bounds: Bounds = BOUNDS) -> int:
    return Scaler(bounds, count, calm).decide(demand).count


@pytest.mark.parametrize(
    ("count", "demand", "expected"),
    [
        (2, Demand(), 2),
        (2, Demand(pending=1), 2),
        (2, Demand(pending=20), 2),
        (2, Demand(pending=21), 3),
        (2, Demand(pending=1, running=20), 3),
        (2, Demand(pending=1000), 8),
        (2, Demand(running=20), 2),
        (2, Demand(pending=1, oldest_age=5.0), 2),
        (2, Demand(pending=1, oldest_age=5.1), 3),
        (2, Demand(pending=0, oldest_age=99.0), 2),
        (7, Demand(pending=1, oldest_age=99.0), 8),
        (8, Demand(pending=1, oldest_age=99.0), 8),
        (3, Demand(pending=50, oldest_age=99.0), 5),
        (8, Demand(), 8),
    ],
)
def test_up_at_once_and_never_down_at_once(count, demand, expected):
    assert decided(count, demand) == expected


def counts(scaler: Scaler, *demands: Demand) -> list[int]:
    seen = []
    for demand in demands:
        scaler = scaler.decide(demand)
        seen.append(scaler.count)
    return seen


def test_down_after_patience_then_one_at_a_look_to_the_default():
    assert counts(Scaler(BOUNDS, 5), *[IDLE] * 7) == [5, 5, 4, 3, 2, 2, 2]


def test_one_measurement_at_which_all_are_needed_resets_the_patience():
    needed = Demand(running=41)
    assert counts(Scaler(BOUNDS, 5), IDLE, IDLE, needed, IDLE, IDLE, IDLE) == [5, 5, 5, 5, 5, 4]


def test_a_burst_during_the_descent_brings_all_back():
    assert counts(Scaler(BOUNDS, 5), IDLE, IDLE, IDLE, Demand(pending=500), IDLE, IDLE) == [5, 5, 4, 8, 8, 8]


def test_a_pool_of_fixed_size_never_moves():
    fixed = Bounds(default_count=3, max_count=3, concurrency=1, patience=1)
    assert not fixed.scales
    assert counts(Scaler.of(fixed), Demand(pending=99, oldest_age=99.0), IDLE, IDLE) == [3, 3, 3]


amounts = st.integers(0, 10_000)
demands = st.builds(Demand, pending=amounts, running=amounts, oldest_age=st.floats(0, 1e6))


@st.composite
def scalers(draw) -> Scaler:
    low = draw(st.integers(1, 20))
    bounds = Bounds(
        default_count=low,
        max_count=low + draw(st.integers(0, 40)),
        concurrency=draw(st.integers(1, 100)),
        target_wait=draw(st.floats(0.1, 60)),
        patience=draw(st.integers(1, 10)),
    )
    return Scaler(bounds, draw(st.integers(bounds.default_count, bounds.max_count)), draw(st.integers(0, bounds.patience)))


@given(scalers(), st.lists(demands, max_size=60))
def test_it_stays_within_its_bounds_and_goes_down_by_one_only(scaler, seen):
    before = scaler.count
    for count in counts(scaler, *seen):
        assert scaler.bounds.default_count <= count <= scaler.bounds.max_count
        assert count >= before - 1
        before = count


@given(scalers(), demands)
def test_it_does_not_flap_while_the_demand_stays_the_same(scaler, demand):
    long_enough = scaler.bounds.patience + scaler.bounds.max_count + 2
    seen = [scaler.count, *counts(scaler, *[demand] * (2 * long_enough))]
    steps = [after - before for before, after in itertools.pairwise(seen) if after != before]
    assert all(step > 0 for step in steps) or all(step < 0 for step in steps)
    assert len(set(seen[long_enough:])) == 1


@given(scalers(), demands, amounts)
def test_more_jobs_never_mean_fewer_processes(scaler, demand, more):
    deeper = Demand(pending=demand.pending + more, running=demand.running, oldest_age=demand.oldest_age)
    assert scaler.decide(deeper).count >= scaler.decide(demand).count


@given(scalers())
def test_a_big_burst_brings_the_largest_number_at_the_first_look(scaler):
    assert scaler.decide(Demand(pending=scaler.bounds.most_jobs)).count == scaler.bounds.max_count
