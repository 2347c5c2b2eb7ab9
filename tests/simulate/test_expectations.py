"""Expectations and their comparison with jobs, without a database."""

from __future__ import annotations

from types import SimpleNamespace
from uuid import uuid4

import pytest

from tenure import State, UnknownKind
from tenure.simulate.draws import checksum, fraction, milliseconds, noise
from tenure.simulate.expectations import check, expected
from tests.simulate.inputs import ALL_KINDS, input_of, job_as_expected


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_kind_is_expected_and_always_alike(kind):
    once, again = expected(kind, input_of(kind)), expected(kind, input_of(kind))
    assert once == again
    assert once.state in (State.COMPLETED, State.FAILED, State.CANCELED, State.DEAD_LETTER)
    assert (once.error_contains is None) == (once.state == State.COMPLETED)


def test_what_is_drawn_from_a_seed_is_the_same_everywhere():
    assert [fraction(seed, "x") for seed in (1, 2)] == [0.38271739380434155, 0.9724210407584906]
    assert [milliseconds(seed, "slow", least=50, most=1000) for seed in (1, 2)] == [606, 106]
    assert checksum(7, 1000) == 2656258971
    assert noise(1, 1)[:16] == "f5b165224a58b791"
    assert len(noise(1, 500)) == 500 * 1024


def test_other_input_has_other_expectations():
    assert expected("flaky_until", {"seed": 1, "succeeds_at": 4}).attempts == 4
    assert expected("flaky_until", {"seed": 1, "succeeds_at": 5}).state == State.DEAD_LETTER
    assert expected("chained", {"seed": 1, "links": 1}).children == 0
    assert expected("fan_out", {"seed": 1, "children": 9}).children == 9


def test_an_unknown_kind_is_refused():
    with pytest.raises(UnknownKind, match="did you mean 'quick'"):
        expected("quik", {"seed": 1})


CHILDLESS = [kind for kind in ALL_KINDS if not expected(kind, input_of(kind)).children]


@pytest.mark.parametrize("kind", CHILDLESS)
def test_a_job_that_ended_as_expected_is_not_a_surprise(kind):
    assert check([job_as_expected(kind)]) == []


@pytest.mark.parametrize(
    ("kind", "changes", "told"),
    [
        ("quick", {"state": "running"}, "is running, expected completed"),
        (
            "quick",
            {"state": "dead_letter", "error": "Traceback\n  line\nKeyError: 'x'"},
            "is dead_letter (KeyError: 'x'), expected completed",
        ),
        ("always_failing", {"attempt": 2}, "took 2 attempts, expected 3"),
        ("crashes_once", {"crashes": 0}, "has 0 crashes, expected at least 1"),
        ("quick", {"output": 8}, "returned 8, expected 7"),
        ("fails_for_good", {"error": "so it is"}, "has the error 'so it is', expected one with 'seed 7 is beyond repair'"),
        ("exits", {"error": None}, "has the error 'none', expected one with 'seed 7 has had enough'"),
        ("chained", {}, "has 0 children, expected 1"),
    ],
)
def test_a_difference_is_reported_in_one_sentence(kind, changes, told):
    job = job_as_expected(kind, **changes)
    [surprise] = check([job])
    assert (surprise.job_id, surprise.kind, surprise.problem) == (job.id, kind, told)
    assert str(surprise) == f"{kind} {job.id} {told}"


def test_a_worker_that_died_for_another_reason_is_not_a_surprise():
    assert check([job_as_expected("quick", crashes=1)]) == []


def test_long_values_are_reported_short():
    [surprise] = check([job_as_expected("big_output", output="no")])
    assert len(surprise.problem) < 200


def test_children_are_counted_by_their_parent():
    parent = job_as_expected("fan_out")
    children = [job_as_expected("quick", parent_id=parent.id) for _ in range(5)]
    assert check([parent, *children]) == []
    [surprise] = check([parent, *children[1:]])
    assert surprise.problem == "has 4 children, expected 5"


def test_a_job_of_no_known_kind_is_a_surprise():
    [surprise] = check([SimpleNamespace(id=uuid4(), kind="stranger", input={}, parent_id=None)])
    assert "no job named 'stranger'" in surprise.problem
