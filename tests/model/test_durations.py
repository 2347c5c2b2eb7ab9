import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.durations import format_duration, to_seconds, to_timedelta
from tenure.model.errors import ConfigError

CENTURY = timedelta(days=36_525)
spans = st.timedeltas(min_value=timedelta(), max_value=CENTURY)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("1000ms", 1),
        ("30s", 30),
        ("5m", 300),
        ("2h", 7_200),
        ("1d", 86_400),
        ("1.5h", 5_400),
        (".5s", 0.5),
        ("1h30m", 5_400),
        ("1d 2h 3m 4s 5ms", 93_784.005),
        ("  10 s  ", 10),
        ("0s", 0),
        (30, 30),
        (0, 0),
        (0.25, 0.25),
        (timedelta(minutes=1), 60),
    ],
)
def test_a_duration_is_read_from_every_accepted_form(written, seconds):
    assert to_timedelta(written) == timedelta(seconds=seconds)
    assert to_seconds(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written",
    ["", "  ", "s", "5", "5 parsecs", "5M", "1h30", "-5s", "1..5s", "1e3s", "٣s", "nan", "inf", "5s;", "9" * 400 + "s"],
)
def test_text_that_is_not_a_duration_is_refused(written):
    with pytest.raises(ConfigError, match="timeout is"):
        to_timedelta(written, what="timeout")


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -0.001,
        math.nan,
        math.inf,
        -math.inf,
        10**400,
        pytest.param(10**5000, id="huge"),
        timedelta(seconds=-1),
        timedelta.max,
        "36526d",
        4e9,
    ],
)
def test_negative_endless_and_absurd_spans_are_refused(value):
    with pytest.raises(ConfigError, match=r"lease is .* between 0 and 100 years"):
        to_timedelta(value, what="lease")


@pytest.mark.parametrize("value", [True, None, [1], b"5s"])
def test_other_types_are_refused(value):
    with pytest.raises(ConfigError, match="not a duration"):
        to_timedelta(value)


def test_a_refusal_names_the_setting_the_value_and_the_accepted_forms():
    with pytest.raises(ConfigError) as caught:
        to_timedelta("5 parsecs", what="retry.initial")
    assert "retry.initial is '5 parsecs'" in str(caught.value)
    assert '"1000ms", "30s", "5m", "2h", "1d", "1h30m"' in str(caught.value)


def test_a_refusal_of_a_long_text_stays_short():
    with pytest.raises(ConfigError) as caught:
        to_timedelta("x" * 100_000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("span", "written"),
    [
        (timedelta(), "0s"),
        (timedelta(milliseconds=250), "250ms"),
        (timedelta(microseconds=1_500), "1.5ms"),
        (timedelta(seconds=1.25), "1.25s"),
        (timedelta(minutes=90), "1h 30m"),
        (timedelta(days=2, seconds=5), "2d 5s"),
        (timedelta(seconds=-30), "-30s"),
    ],
)
def test_a_duration_is_written_short(span, written):
    assert format_duration(span) == written


@given(spans)
def test_what_is_written_reads_back_to_the_same_span(span):
    assert to_timedelta(format_duration(span)) == span


@given(spans)
def test_seconds_agree_with_the_span(span):
    assert to_seconds(span) == span.total_seconds()
