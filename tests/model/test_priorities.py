import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.errors import ConfigError
from tenure.model.priorities import Priority, priority_name, to_priority


@pytest.mark.parametrize(
    ("value", "number"),
    [("high", 75), ("HIGH", 75), (" Critical ", 100), ("60", 60), (60, 60), (Priority.LOW, 25), ("0", 0), (100, 100)],
)
def test_a_priority_is_read_by_name_or_number(value, number):
    found = to_priority(value)
    assert found == number
    assert type(found) is int


@pytest.mark.parametrize("value", [-1, 101, "101", "-1", True, 50.0, None, "9" * 5000])
def test_what_is_not_between_0_and_100_is_refused(value):
    with pytest.raises(ConfigError, match="0 to 100"):
        to_priority(value)


def test_a_misspelt_name_is_answered_with_the_near_one():
    with pytest.raises(ConfigError, match="did you mean 'critical'"):
        to_priority("critcal")


def test_an_unknown_name_is_answered_with_all_names():
    with pytest.raises(ConfigError, match="background, low, normal, high, critical"):
        to_priority("xyz")


def test_only_named_numbers_have_a_name():
    assert priority_name(75) == "high"
    assert priority_name(60) == "60"


@given(st.integers(min_value=0, max_value=100))
def test_the_name_of_a_priority_reads_back(number):
    assert to_priority(priority_name(number)) == number
