import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.errors import InvalidPayload
from tenure.model.payloads import MAX_PAYLOAD, check_json_text, check_numbers, clean_text, describe_exception, with_members

storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


def check(text, limit=MAX_PAYLOAD):
    check_json_text(text, what="the input of job 'x'", limit=limit)


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b"null",
        rb'{"a":"a \\u0000 written out"}',
        rb'{"a":"\\\\u0000"}',
        rb'{"a":"\\ud800"}',
        rb'{"a":"\ud83d\ude00"}',
        rb'{"a":"\u0001 \u00e9 \n \" \\"}',
        b'{"a":"NaN","Infinity":"-Infinity, said NaN"}',
        rb'{"a":"say \"NaN\""}',
        b'{"a":"' + b"[{" * 500 + b'"}',
        b"[" + b"[],{}," * 500 + b"1]",
        b"[" * 64 + b"]" * 64,
        b'{"a":' * 63 + b"[]" + b"}" * 63,
        b'["' + b"9" * 200_000 + b'"]',
    ],
)
def test_storable_json_passes(text):
    json.loads(text)
    check(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (rb'{"a":"\u0000"}', "NUL"),
        (rb'{"a":"\\\u0000"}', "NUL"),
        (rb'{"\u0000":1}', "NUL"),
        (rb'{"a":"\ud800"}', "lone surrogate"),
        (rb'{"a":"\uDC00"}', "lone surrogate"),
        (rb'{"a":"\ud800\ud800\udc00"}', "lone surrogate"),
        (rb'{"a":"\ud83d\\ude00"}', "lone surrogate"),
        (b'{"a":NaN}', "NaN"),
        (b'["NaN",NaN]', "NaN"),
        (b'{"a":-Infinity}', "Infinity"),
        (rb'{"a":"\"","b":Infinity}', "Infinity"),
        (b"[" * 65 + b"]" * 65, "deeper than 64"),
        (b'{"a":' * 64 + b"[]" + b"}" * 64, "deeper than 64"),
        (b"[" + b"9" * 200_000 + b"]", "digits"),
    ],
)
def test_json_that_postgresql_refuses_is_refused_here(text, reason):
    with pytest.raises(InvalidPayload, match=reason) as caught:
        check(text)
    assert "the input of job 'x'" in str(caught.value)


def test_a_payload_over_the_limit_is_refused_with_size_limit_and_advice():
    with pytest.raises(InvalidPayload, match=r"is 11 bytes, but at most 10 are allowed: .* pass a reference"):
        check(b'"123456789"', limit=10)
    check(b'"12345678"', limit=10)


@given(st.recursive(storable | st.integers() | st.none(), st.lists, max_leaves=30), st.booleans())
def test_no_false_alarm_for_sound_json(value, ascii_only):
    check(json.dumps(value, ensure_ascii=ascii_only).encode())


@given(st.text(st.characters(codec=None), min_size=1))
def test_escaped_text_is_refused_exactly_if_it_holds_nul_or_half_a_character(text):
    escaped = json.dumps(text).encode()
    read = json.loads(escaped)  # joins halves that met by chance
    if "\x00" in read or any("\ud800" <= char <= "\udfff" for char in read):
        with pytest.raises(InvalidPayload):
            check(escaped)
    else:
        check(escaped)


@pytest.mark.parametrize("value", [float("nan"), [1, [float("inf")]], {"a": ({"b": float("-inf")},)}])
def test_numbers_that_are_none_are_found_at_any_depth(value):
    with pytest.raises(InvalidPayload, match=r"NaN|Infinity"):
        check_numbers(value, what="it")


def test_finite_numbers_pass():
    assert check_numbers({"a": [1.5, 2, None, "NaN", {3.0}]}, what="it") is None


def test_text_that_cannot_be_stored_is_replaced():
    assert clean_text("a\x00b\ud800c") == "a\ufffdb\ufffdc"


def test_short_text_is_kept_as_it_is():
    assert clean_text("all fine é 😀") == "all fine é 😀"


def test_long_text_keeps_its_head_and_its_tail():
    cleaned = clean_text("head" + "x" * 100_000 + "tail", limit=1_000)
    assert cleaned.startswith("head")
    assert cleaned.endswith("tail")
    assert "characters left out" in cleaned
    assert len(cleaned) <= 1_000


@given(st.text(st.characters(codec=None), max_size=300), st.integers(min_value=1, max_value=200))
def test_cleaned_text_always_fits_and_is_always_storable(text, limit):
    cleaned = clean_text(text, limit)
    assert len(cleaned) <= limit
    assert "\x00" not in cleaned
    cleaned.encode()


def test_the_count_of_what_was_left_out_is_true():
    cleaned = clean_text("a" * 500, limit=100)
    assert cleaned.count("a") - "characters".count("a") == 500 - int(cleaned.split(" … ")[1].split()[0])


def raised(exc):
    try:
        raise exc
    except BaseException as caught:
        return caught


def test_an_exception_is_described_by_its_traceback():
    described = describe_exception(raised(ValueError("no such user")))
    assert described.startswith("ValueError: no such user\n\nTraceback")
    assert "in raised" in described
    assert described.endswith("ValueError: no such user\n")


def test_the_cause_is_reported_too():
    exc = ValueError("outer")
    exc.__cause__ = KeyError("inner")
    assert "KeyError: 'inner'" in describe_exception(exc)


class Hostile(Exception):
    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


class HostileNotes(Exception):
    @property
    def __notes__(self):
        raise RuntimeError("no notes")


@pytest.mark.parametrize("exc", [Hostile(), HostileNotes(), ExceptionGroup("many", [Hostile(), ValueError()])])
def test_a_hostile_exception_is_described_all_the_same(exc):
    assert type(exc).__name__ in describe_exception(raised(exc))


def test_an_exception_with_a_huge_or_unstorable_message_is_cut_and_cleaned():
    described = describe_exception(raised(ValueError("\x00\ud800" + "x" * 5_000_000 + "the end")))
    assert len(described) <= 16_384
    assert described.startswith("ValueError: \ufffd\ufffdxxx")
    assert described.endswith("the end\n")
    assert "\x00" not in describe_exception(ValueError("\x00"))


def test_an_endless_recursion_is_described():
    def dive():
        return dive()

    with pytest.raises(RecursionError) as caught:
        dive()
    assert "RecursionError" in describe_exception(caught.value)


def test_a_chain_of_thousands_of_causes_is_described():
    exc = None
    for number in range(3_000):
        following = ValueError(str(number))
        following.__cause__ = exc
        exc = following
    assert describe_exception(exc).endswith("ValueError: 2999\n")


@given(st.dictionaries(storable, st.integers(), min_size=1))
def test_members_are_added_to_an_object_as_they_are(fields):
    text = with_members(json.dumps(fields), output='{"a":[1]}', before="null")
    assert json.loads(text) == {**fields, "output": {"a": [1]}, "before": None}
