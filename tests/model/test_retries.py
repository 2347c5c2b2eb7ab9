import asyncio
import dataclasses
import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.errors import ConfigError
from tenure.model.retries import Retry

HARDLY = timedelta(microseconds=1)

chances = st.floats(min_value=0, max_value=1, exclude_max=True)
attempts = st.integers(min_value=1, max_value=100_000)
policies = st.builds(
    lambda initial, more, **rest: Retry(initial=initial, max_backoff=initial + more, **rest),
    st.timedeltas(min_value=timedelta(), max_value=timedelta(days=1)),
    st.timedeltas(min_value=timedelta(), max_value=timedelta(days=1)),
    backoff=st.sampled_from(["fixed", "linear", "exponential"]),
    multiplier=st.floats(min_value=1, max_value=100),
    jitter=st.booleans(),
)


def waits(policy, count):
    return [policy.delay(attempt, 0).total_seconds() for attempt in range(1, count + 1)]


def test_the_default_is_three_attempts_with_jitter_and_a_cap_of_five_minutes():
    policy = Retry()
    assert (policy.max_attempts, policy.backoff, policy.jitter) == (3, "exponential", True)
    assert (policy.initial, policy.max_backoff) == (timedelta(seconds=1), timedelta(minutes=5))


def test_an_exponential_wait_multiplies_up_to_the_cap():
    assert waits(Retry(jitter=False, max_backoff="10s"), 6) == [1, 2, 4, 8, 10, 10]


def test_a_linear_wait_adds_up_to_the_cap():
    assert waits(Retry(backoff="linear", initial="2s", jitter=False, max_backoff="7s"), 5) == [2, 4, 6, 7, 7]


def test_a_fixed_wait_stays():
    assert waits(Retry(backoff="fixed", initial="3s", jitter=False), 3) == [3, 3, 3]


def test_jitter_takes_up_to_half():
    policy = Retry(backoff="fixed", initial="10s")
    assert policy.delay(1, 0) == timedelta(seconds=5)
    assert policy.delay(1, 0.5) == timedelta(seconds=7.5)
    assert timedelta(seconds=9.999) < policy.delay(1, 0.9999) <= timedelta(seconds=10)


def test_ten_thousand_failures_do_not_overflow():
    assert Retry(jitter=False).delay(10_000, 0) == timedelta(minutes=5)
    assert Retry(initial=0, jitter=False).delay(10_000, 0) == timedelta()


@given(policies, attempts, chances)
def test_a_wait_lies_between_half_the_nominal_and_the_cap(policy, attempt, chance):
    nominal = dataclasses.replace(policy, jitter=False).delay(attempt, 0)
    wait = policy.delay(attempt, chance)
    assert wait <= nominal <= policy.max_backoff
    assert wait >= nominal * 0.5 - HARDLY
    assert policy.jitter or wait == nominal


@given(policies, attempts, chances)
def test_a_later_wait_is_never_shorter(policy, attempt, chance):
    assert policy.delay(attempt, chance) <= policy.delay(attempt + 1, chance)


def test_every_exception_is_retried_by_default_but_no_interruption():
    policy = Retry()
    assert policy.wants(ValueError())
    assert not policy.wants(KeyboardInterrupt())
    assert not policy.wants(asyncio.CancelledError())


def test_only_the_named_exceptions_are_retried():
    policy = Retry(on=[OSError, ValueError])
    assert policy.wants(TimeoutError())  # an OSError
    assert policy.wants(ValueError())
    assert not policy.wants(KeyError())


def test_giving_up_wins_over_retrying():
    policy = Retry(on=OSError, give_up_on=FileNotFoundError)
    assert policy.wants(TimeoutError())
    assert not policy.wants(FileNotFoundError())


def test_all_faults_are_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        Retry(
            max_attempts=0,
            backoff="exponental",
            initial="soon",
            multiplier=0.5,
            max_backoff=-1,
            jitter="yes",
            on=["ValueError"],
            give_up_on=(),
        )
    told = str(caught.value)
    for part in (
        "max_attempts is 0",
        "did you mean 'exponential'",
        "initial is 'soon'",
        "multiplier is 0.5",
        "max_backoff is -1",
        "jitter is 'yes'",
        "on holds 'ValueError'",
        "give_up_on is empty",
    ):
        assert part in told


@pytest.mark.parametrize("wrong", [True, 1.5, "3", 10**9])
def test_the_number_of_attempts_is_a_sane_whole_number(wrong):
    with pytest.raises(ConfigError, match="max_attempts is"):
        Retry(max_attempts=wrong)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 0, True, "2"])
def test_the_multiplier_is_a_finite_number_from_1(wrong):
    with pytest.raises(ConfigError, match="multiplier is"):
        Retry(multiplier=wrong)


def test_a_first_wait_above_the_cap_is_answered_with_the_way_out():
    with pytest.raises(ConfigError, match=r"max_backoff is 5m.*raise it to 10m"):
        Retry(initial="10m")


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (None, Retry()),
        (7, Retry(max_attempts=7)),
        ({"max_attempts": 7, "initial": "2s"}, Retry(max_attempts=7, initial=2)),
        (Retry(on=OSError), Retry(on=(OSError,))),
    ],
)
def test_a_policy_is_read_from_a_number_a_mapping_or_nothing(value, meant):
    assert Retry.from_value(value) == meant


@pytest.mark.parametrize("wrong", [True, "3", [3], 0])
def test_other_values_are_not_a_policy(wrong):
    with pytest.raises(ConfigError, match="retry"):
        Retry.from_value(wrong)


def test_an_unknown_field_is_answered_with_the_near_one():
    with pytest.raises(ConfigError, match="did you mean 'max_attempts'"):
        Retry.from_value({"max_atempts": 3})


def test_a_policy_survives_pickling_and_works_as_a_key():
    policy = Retry(5, initial="2s", on=OSError)
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert {policy: 1}[Retry(5, initial=2, on=(OSError,))] == 1


def test_a_policy_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Retry().max_attempts = 9


def test_the_repr_of_a_policy_can_be_pasted():
    for policy in (Retry(), Retry(5, initial="250ms", max_backoff="1h30m", on=(OSError, ValueError), jitter=False)):
        assert eval(repr(policy)) == policy
