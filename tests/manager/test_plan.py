"""Which pools there are to be, from flags and settings."""

from __future__ import annotations

import pytest

from tenure import ConfigError
from tenure.manager.plan import one_pool, pools_of
from tenure.manager.spec import ChildSpec
from tenure.settings import Settings

SPEC = ChildSpec(app="jobs:app", folder="/", flags={})

TWO_POOLS = """
[workers]
default_count = 3
concurrency = 20
capabilities = ["smtp"]
queues = ["a"]
[workers.media]
queues = ["media", "video"]
max_count = 4
recycle_above_mb = 100
[workers.rest]
default_count = 1
capabilities = "gpu, cuda"
"""


def load(folder, text="", **flags) -> Settings:
    (folder / "tenure.toml").write_text(text)
    return Settings.load(folder=folder, environ={}, **flags)


def test_the_defaults_are_those_of_the_seed(tmp_path):
    [plan] = pools_of(load(tmp_path), SPEC)
    assert (plan.name, plan.default_count, plan.max_count, plan.patience) == ("default", 2, 8, 30)


def test_a_pool_inherits_what_it_does_not_say_but_for_the_queues(tmp_path):
    settings = load(tmp_path, TWO_POOLS)
    media, rest = settings.pools["media"], settings.pools["rest"]
    assert (media.default_count, media.max_count, media.concurrency, media.capabilities) == (3, 4, 20, ("smtp",))
    assert (media.queues, media.recycle_above_mb) == (("media", "video"), 100)
    assert (rest.default_count, rest.max_count, rest.capabilities, rest.queues) == (1, 8, ("gpu", "cuda"), ())
    assert settings.in_pool("media").workers is media
    assert settings.in_pool("default") is settings


def test_every_pool_knows_the_queues_of_the_others(tmp_path):
    plans = {plan.name: plan for plan in pools_of(load(tmp_path, TWO_POOLS), SPEC)}
    assert list(plans) == ["default", "media", "rest"]
    assert plans["default"].spec.without == ["media", "video"]
    assert plans["rest"].spec.without == ["a", "media", "video"]
    assert {plan.spec.pool for plan in plans.values()} == set(plans)


def test_some_of_the_pools_by_name(tmp_path):
    settings = load(tmp_path, TWO_POOLS)
    assert [plan.name for plan in pools_of(settings, SPEC, ["rest"])] == ["rest"]
    with pytest.raises(ConfigError, match="no pool 'medai': use one of default, media, rest"):
        pools_of(settings, SPEC, ["medai"])


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [(None, None, (2, 8)), (5, None, (5, 5)), (None, 4, (2, 4)), (None, 1, (1, 1)), (3, 6, (3, 6))],
)
def test_flags_make_one_pool(tmp_path, least, most, expected):
    [plan] = one_pool(SPEC, load(tmp_path), least, most)
    assert (plan.default_count, plan.max_count) == expected


def test_more_to_begin_with_than_there_may_be_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"--max-processes is 2, which is less than --processes \(3\)"):
        one_pool(SPEC, load(tmp_path), 3, 2)


def test_a_default_count_above_the_usual_limit_raises_it(tmp_path):
    assert load(tmp_path, "[workers]\ndefault_count = 12\n").workers.max_count == 12


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[workers]\ndefault_count = 4\nmax_count = 2\n", "workers.max_count is 2, but default_count is 4"),
        ("[workers]\ndefault_count = 4\n[workers.x]\nmax_count = 2\n", "workers.x.max_count is 2, but default_count is 4"),
        ("[workers.x]\ncuncurrency = 4\n", "unknown setting 'cuncurrency' in [workers.x]; did you mean 'concurrency'?"),
        ("[workers.x]\nlease_timeout_seconds = 4\n", "the same for all pools: set it in [workers]"),
        ("[workers.default]\nconcurrency = 4\n", "give this pool another name"),
        ("[workers.concurrency]\nqueues = ['a']\n", "'concurrency' is a setting"),
        ("[workers]\nqueues = 5\n", "5 is not a list of names"),
        ("[workers]\nqueues = [5]\n", "[5] is not a list of names"),
        ("[workers.x]\nconcurrency = 0\n", "workers.x.concurrency must be at least 1"),
        ("[workers]\nrestart_limit = -1\n", "workers.restart_limit must be 0 (no limit) or more"),
        ("[workers]\nscale_interval_ms = 5\n", "must be at least 100"),
        ("[workers.x.y]\nqueues = ['a']\n", "unknown setting 'y'"),
    ],
)
def test_invalid_settings_are_reported(tmp_path, text, told):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert told in str(caught.value)


def test_a_process_of_an_unknown_pool_reports_that(tmp_path):
    with pytest.raises(ConfigError, match="no pool 'media'"):
        load(tmp_path).in_pool("media")
