import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Optional
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from tests.model.shapes import (
    ANYTHING,
    Attrs,
    Color,
    Ctx,
    Data,
    Model,
    Struct,
    Typed,
    TypedExtension,
    codec,
    problems,
    round_trip,
)

from tenure.model.errors import InvalidInput


def test_plain_parameters_are_one_object():
    def job(user_id: int, text: str): ...

    assert codec(job).encode((1,), {"text": "é"}) == '{"user_id":1,"text":"é"}'.encode()


def test_positional_and_named_arguments_give_the_same_json():
    def job(a: int, b: int, *, c: int = 0): ...

    made = codec(job)
    assert made.encode((1, 2), {"c": 3}) == made.encode((), {"a": 1, "b": 2, "c": 3}) == b'{"a":1,"b":2,"c":3}'


def test_the_context_is_not_part_of_the_input():
    def job(a: int, ctx: Ctx, b: int): ...

    assert codec(job).encode((1, 2), {}) == b'{"a":1,"b":2}'


def test_arguments_left_to_the_default_stay_out():
    def job(a: int, b: int = 5): ...

    assert codec(job).encode((1,), {}) == b'{"a":1}'
    assert codec(job).decode(b'{"a":1}') == {"a": 1}


def test_no_parameters_is_an_empty_object():
    async def job(): ...

    assert codec(job).encode((), {}) == b"{}"
    assert codec(job).decode(b"{}") == codec(job).decode("{}") == codec(job).decode(b"{ }") == {}


def test_decoded_arguments_are_never_shared():
    async def job(): ...

    made = codec(job)
    made.decode(b"{}")["x"] = 1
    assert made.decode(b"{}") == {}


def test_text_is_decoded_as_bytes_are():
    def job(when: datetime): ...

    moment = {"when": datetime(2026, 1, 1, tzinfo=UTC)}
    assert codec(job).decode('{"when":"2026-01-01T00:00:00Z"}') == moment
    assert codec(job).decode(b'{"when":"2026-01-01T00:00:00Z"}') == moment


def test_rich_types_are_decoded_unchanged():
    def job(  # noqa: PLR0917 - many types, one call
        a: UUID, b: datetime, c: Decimal, d: Color, e: Path, f: set[int], g: tuple[int, str], h: timedelta, i: bytes
    ): ...

    given_ = (
        uuid4(),
        datetime(2026, 1, 1, tzinfo=UTC),
        Decimal("1.10"),
        Color.RED,
        Path("/a/b"),
        {1, 2},
        (1, "x"),
        timedelta(minutes=1),
        b"bytes of text",
    )
    back = round_trip(job, *given_)
    assert tuple(back.values()) == given_
    assert [type(value) for value in back.values()] == [type(value) for value in given_]


@pytest.mark.parametrize("model", [Model, Data, Struct, Attrs])
def test_models_among_other_arguments_are_decoded_with_their_type(model):
    def job(a: model, b: list[model], c: Optional[model], d: dict[str, model | None], e: int): ...  # noqa: UP045 - both spellings

    one = model(user_id=1)
    assert round_trip(job, one, [one], None, {"x": one}, 1) == {
        "a": one,
        "b": [one],
        "c": None,
        "d": {"x": one},
        "e": 1,
    }


@pytest.mark.parametrize("model", [Typed, TypedExtension])
def test_typed_dicts_among_other_arguments_are_checked(model):
    def job(a: model, b: Sequence[model] | None = None): ...

    assert round_trip(job, {"user_id": "1"}, b=[{"user_id": 2}]) == {"a": {"user_id": 1}, "b": [{"user_id": 2}]}
    assert problems(job, {"user_id": "x"})[0].startswith("a.user_id: ")


def test_a_model_may_be_passed_as_a_dict():
    def job(a: Model, b: Struct): ...

    assert round_trip(job, {"user_id": 1}, {"user_id": 2}) == {"a": Model(user_id=1), "b": Struct(2)}


def test_each_wrong_field_is_reported_in_a_line():
    def job(user_id: int, text: str): ...

    told = problems(job, "x", 5)
    assert told == [
        "user_id: Input should be a valid integer, unable to parse string as an integer",
        "text: Input should be a valid string",
    ]


def test_arguments_are_not_repeated_in_the_complaint():
    def job(token: Annotated[str, Field(max_length=3)]): ...

    assert "secret" not in str(problems(job, "secret"))


def test_constraints_are_kept():
    def job(n: Annotated[int, Field(gt=0)], mode: Literal["a", "b"] = "a"): ...

    assert [line.split(":")[0] for line in problems(job, 0, mode="c")] == ["n", "mode"]


def test_thousands_of_problems_are_not_all_reported():
    def job(numbers: list[int]): ...

    told = problems(job, ["x"] * 5_000)
    assert len(told) == 21
    assert told[-1] == "and 4980 more"


@pytest.mark.parametrize(
    ("args", "kwargs", "reason"),
    [
        ((), {}, "a: a required argument is missing"),
        ((1, 2, 3, 4), {}, "too many positional"),
        ((1,), {"a": 2}, "multiple values for argument 'a'"),
        ((1,), {"x": 2}, "x: an unexpected argument"),
        ((1,), {"ctx": 2}, "ctx: an unexpected argument"),
    ],
)
def test_a_call_that_does_not_fit_is_reported_with_the_signature(args, kwargs, reason):
    def job(ctx: Ctx, a: int, b: int = 0, *, c: int = 0): ...

    told = problems(job, *args, **kwargs)
    assert reason in told[0]
    assert "it takes (a: int, b: int = 0, *, c: int = 0)" in told[0]


def test_a_required_keyword_is_missed():
    def job(a: int = 0, *, b: int): ...

    assert problems(job, 1)[0].startswith("b: ")
    assert codec(job).encode((), {"b": 1}) == b'{"b":1}'


def test_no_parameters_means_no_arguments():
    async def job(): ...

    assert "too many positional" in problems(job, 1)[0]


def test_bound_values_are_given_as_they_are():
    def job(message: Model, n: int = 0): ...

    message = Model(user_id=1)
    assert codec(job).bind((message,), {}) == {"message": message}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b'{"a":"x"}', "a: "),
        (b'{"a":1,"z":2}', "z: Extra inputs are not permitted"),
        (b"{}", "a: Field required"),
        (b"[]", "arguments: "),
        (b"{", "arguments: Invalid JSON"),
        (b"", "arguments: "),
        (b"\xff", "arguments: "),
    ],
)
def test_stored_json_that_no_longer_fits_is_refused(text, told):
    def job(a: int): ...

    with pytest.raises(InvalidInput) as caught:
        codec(job).decode(text)
    assert str(caught.value.problems[0]).startswith(told)


def test_extra_fields_are_refused_where_nothing_is_taken():
    async def job(): ...

    with pytest.raises(InvalidInput, match="x: Extra inputs"):
        codec(job).decode(b'{"x":1}')


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**200), max_value=2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="ascii", min_codepoint=1)), inner),
    max_leaves=20,
)


@given(json_values, json_values)
def test_any_json_is_decoded_unchanged(a, b):
    text = ANYTHING.encode((a, b), {})
    assert json.loads(text) == {"a": a, "b": b}
    assert ANYTHING.decode(text) == {"a": a, "b": b}
