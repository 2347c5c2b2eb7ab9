"""The same seed, the same faults."""

from __future__ import annotations

from itertools import islice, takewhile

import pytest

from tenure.chaos.faults import KINDS
from tenure.chaos.job_mix import JobMix
from tenure.chaos.plan import LULL, PERIOD, STORM, draw_plan, is_quiet, phase

WEIGHTS = {name: kind.weight for name, kind in KINDS.items()}
IN_LULLS = frozenset(name for name, kind in KINDS.items() if kind.in_lulls)


def plan(seed: int, seconds: float = 600):
    return list(takewhile(lambda one: one.at < seconds, draw_plan(seed, WEIGHTS, IN_LULLS)))


def test_a_seed_repeats_its_plan_and_another_does_not():
    assert plan(7) == plan(7)
    assert plan(7) != plan(8)


@pytest.mark.parametrize("seed", range(5))
def test_ten_minutes_have_enough_faults_of_every_kind(seed):
    drawn = plan(seed)
    assert len(drawn) >= 1500
    assert {one.kind for one in drawn} == set(KINDS)


@pytest.mark.parametrize("seed", range(5))
def test_every_kind_comes_within_the_first_two_storms(seed):
    assert {one.kind for one in plan(seed, 2 * (STORM + LULL))} == set(KINDS)


def test_in_a_lull_no_connection_is_broken():
    injected = {one.kind for one in plan(3, 3000) if phase(one.at) == "lull"}
    assert injected == IN_LULLS


def test_in_a_calm_there_are_no_faults_and_clients_have_let_the_queue_run_empty():
    assert {phase(one.at) for one in plan(3, 3000)} == {"storm", "lull"}
    assert phase(PERIOD - 1) == "calm"
    assert is_quiet(PERIOD - 1)
    assert not is_quiet(PERIOD + 1)


def test_a_plan_of_few_kinds_has_no_lull():
    assert {one.kind for one in islice(draw_plan(1, {"cut": 1.0}, frozenset()), 200)} == {"cut"}


def test_a_lower_rate_gives_fewer_faults_of_every_kind():
    slow = list(takewhile(lambda one: one.at < 600, draw_plan(7, WEIGHTS, IN_LULLS, rate=1.0)))
    assert {one.kind for one in slow} == set(KINDS)
    assert len(slow) < len(plan(7)) / 3


def test_a_seed_repeats_its_jobs():
    def requests(seed: int):
        numbers = iter(range(1_000_000))
        mix = JobMix(seed, 3.0, 0.1, lambda: next(numbers))
        return [one.request for _ in range(20) for one in mix.batch()] + [mix.slow().request for _ in range(100)]

    assert requests(5) == requests(5)
    assert requests(5) != requests(6)
