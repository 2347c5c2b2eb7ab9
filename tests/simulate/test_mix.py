"""Mixes: the same seed gives the same jobs."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice

import pytest

from tenure import ConfigError
from tenure.simulate.catalogue import JOBS
from tenure.simulate.expectations import expected
from tenure.simulate.mix import MIXES, Mix
from tests.simulate.inputs import ONLY_UNDER_A_SUPERVISOR

EVERY_MIX = pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)


def planned(mix: Mix, seed: int, count: int = 300):
    return list(islice(mix.plan(seed), count))


@EVERY_MIX
def test_the_same_seed_gives_the_same_jobs_and_another_seed_others(mix):
    assert planned(mix, 7) == planned(mix, 7)
    assert planned(mix, 7) != planned(mix, 8)


@EVERY_MIX
def test_every_drawn_job_is_foretold_and_fits_its_kind(mix):
    for job in planned(mix, 3):
        assert expected(job.kind, job.input).state is not None
        assert job.call().kind == job.kind


def test_calls_carry_what_was_planned():
    mix = MIXES["mixed"]
    for job, call in zip(planned(mix, 5, 50), mix.draw(5), strict=False):
        assert (call.kind, json.loads(call.input)) == (job.kind, job.input)
        assert (call.fields.delay or 0) == job.delay_ms / 1000


def test_a_calm_mix_is_calm_and_a_hostile_one_has_everything_but_what_kills_its_worker():
    calm = Counter(job.kind for job in planned(MIXES["calm"], 1, 1000))
    assert calm["quick"] > 600
    assert all(expected(job.kind, job.input).state == "completed" for job in planned(MIXES["calm"], 1))
    assert set(MIXES["hostile"].weights) == set(JOBS) - {ONLY_UNDER_A_SUPERVISOR}
    assert set(MIXES["deadly"].weights) == set(JOBS)


def test_a_mix_of_unknown_kinds_or_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="quik"):
        Mix("mine", "", {"quik": 1})
    with pytest.raises(ConfigError, match="weights"):
        Mix("mine", "", {"quick": 0})
    with pytest.raises(ConfigError, match="weights"):
        Mix("mine", "", {})
