import json
import subprocess
import sys
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Optional, TypeVar
from uuid import UUID, uuid4

import attrs
import msgspec
import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field, field_validator

from tenure.model.codec import InputCodec
from tenure.model.errors import ConfigError, InvalidInput, InvalidPayload
from tenure.model.signatures import Signature

T = TypeVar("T")
NAN = float("nan")


class Ctx:
    pass


def codec(fn, **options):
    return InputCodec(Signature.of(fn, context_type=Ctx), kind="mail.send", **options)


def round_trip(fn, *args, **kwargs):
    made = codec(fn)
    return made.decode(made.encode(args, kwargs))


def problems(fn, *args, **kwargs):
    with pytest.raises(InvalidInput) as caught:
        codec(fn).encode(args, kwargs)
    assert caught.value.kind == "mail.send"
    return caught.value.problems


class Color(Enum):
    RED = "red"


class Model(BaseModel):
    user_id: int
    text: str = "hi"


@dataclass
class Data:
    user_id: int
    text: str = "hi"


class Typed(typing.TypedDict):
    user_id: int
    text: NotRequired[str]


class TypedExtension(typing_extensions.TypedDict):
    user_id: int


class Struct(msgspec.Struct):
    user_id: int
    text: str = "hi"


@attrs.define
class Attrs:
    user_id: int
    text: str = "hi"


# Plain parameters


def test_plain_parameters_are_one_object():
    def job(user_id: int, text: str): ...

    assert codec(job).encode((1,), {"text": "é"}) == '{"user_id":1,"text":"é"}'.encode()


def test_positional_and_named_arguments_give_the_same_json():
    def job(a: int, b: int, *, c: int = 0): ...

    made = codec(job)
    assert made.encode((1, 2), {"c": 3}) == made.encode((), {"a": 1, "b": 2, "c": 3}) == b'{"a":1,"b":2,"c":3}'


def test_the_context_is_no_part_of_the_input():
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


def test_rich_types_come_back_as_they_went():
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
def test_models_among_other_arguments_come_back_typed(model):
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


def test_each_wrong_field_is_told_in_a_line():
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


def test_thousands_of_problems_are_not_all_told():
    def job(numbers: list[int]): ...

    told = problems(job, ["x"] * 5_000)
    assert len(told) == 21
    assert told[-1] == "and 4980 more"


@pytest.mark.parametrize(
    ("args", "kwargs", "reason"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1, 2, 3, 4), {}, "too many positional"),
        ((1,), {"a": 2}, "multiple values for argument 'a'"),
        ((1,), {"x": 2}, "unexpected keyword argument 'x'"),
        ((1,), {"ctx": 2}, "unexpected keyword argument 'ctx'"),
    ],
)
def test_a_call_that_does_not_fit_is_told_with_the_signature(args, kwargs, reason):
    def job(ctx: Ctx, a: int, b: int = 0, *, c: int = 0): ...

    told = problems(job, *args, **kwargs)
    assert reason in told[0]
    assert "it takes (a: int, b: int = 0, *, c: int = 0)" in told[0]


def test_a_required_keyword_is_missed():
    def job(a: int = 0, *, b: int): ...

    assert "'b'" in problems(job, 1)[0]
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
    assert caught.value.problems[0].startswith(told)


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


def anything(a: Any, b=None): ...


ANYTHING = codec(anything)


@given(json_values, json_values)
def test_any_json_comes_back_as_it_went(a, b):
    text = ANYTHING.encode((a, b), {})
    assert json.loads(text) == {"a": a, "b": b}
    assert ANYTHING.decode(text) == {"a": a, "b": b}


# One model: the object input


@pytest.mark.parametrize("model", [Model, Data, Struct, Attrs])
def test_a_single_model_is_the_object_itself(model):
    async def job(ctx: Ctx, message: model): ...

    made = codec(job)
    text = made.encode((model(user_id=1),), {})
    assert json.loads(text) == {"user_id": 1, "text": "hi"}
    assert made.decode(text) == {"message": model(user_id=1)}
    assert made.decode(b'{"user_id":7}') == {"message": model(user_id=7)}
    assert made.encode((), {"message": {"user_id": 1}}) == text
    assert made.model_parameter.name == "message"


@pytest.mark.parametrize("model", [Typed, TypedExtension])
def test_a_single_typed_dict_is_the_object_itself(model):
    def job(message: model): ...

    assert codec(job).encode(({"user_id": 1},), {}) == b'{"user_id":1}'
    assert codec(job).decode(b'{"user_id":1}') == {"message": {"user_id": 1}}
    assert problems(job, {}) == ["user_id: Field required"]


@pytest.mark.parametrize("model", [Model, Data, Struct, Attrs])
def test_problems_of_a_single_model_name_its_fields(model):
    def job(message: model): ...

    assert problems(job, {"user_id": []})[0].startswith("user_id: ")
    assert problems(job, 5)[0].startswith("message: ")
    with pytest.raises(InvalidInput, match="user_id"):
        codec(job).decode(b'{"user_id":"x"}')


def test_a_struct_made_with_wrong_types_is_refused_at_encode():
    def job(message: Struct): ...
    def several(message: Struct, n: int): ...

    assert problems(job, Struct(user_id="x")) == ["user_id: Expected `int`, got `str`"]
    assert problems(several, Struct(user_id="x"), 1)[0].startswith("message: ")


def test_a_generic_model_is_an_object_too():
    @dataclass
    class Page(typing.Generic[T]):
        items: list[T]

    class Box(msgspec.Struct, typing.Generic[T]):
        item: T

    def job(page: Page[int]): ...
    def other(box: Box[int]): ...

    assert codec(job).encode((Page(items=[1]),), {}) == b'{"items":[1]}'
    assert codec(other).encode((Box(item=1),), {}) == b'{"item":1}'
    assert problems(job, {"items": ["x"]})[0].startswith("items.0: ")
    assert problems(other, Box(item="x"))[0].startswith("item: ")


@pytest.mark.parametrize("shape", [Model | None, list[Model], RootModel[list[int]], dict[str, int]])
def test_what_may_be_no_object_is_a_plain_parameter(shape):
    def job(message: shape): ...

    assert codec(job).model_parameter is None


def test_a_struct_that_is_written_as_a_list_is_a_plain_parameter():
    class Point(msgspec.Struct, array_like=True):
        x: int

    def job(point: Point): ...

    assert codec(job).encode((Point(1),), {}) == b'{"point":[1]}'
    assert round_trip(job, Point(1)) == {"point": Point(1)}


def test_a_single_model_left_to_its_default_is_null_and_not_an_empty_model():
    def job(message: Model = Model(user_id=9)): ...  # noqa: B008 - the default is what is tested

    made = codec(job)
    assert made.encode((), {}) == b"null"
    assert made.decode(b"null") == made.decode("null") == {}
    assert made.decode(made.encode((Model(user_id=1),), {})) == {"message": Model(user_id=1)}


def test_aliases_and_computed_fields_survive_the_journey():
    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")
        user_id: int = Field(alias="userId")

        @computed_field
        @property
        def double(self) -> int:
            return self.user_id * 2

    def job(message: Strict): ...

    assert codec(job).encode((Strict(userId=1),), {}) == b'{"userId":1}'
    assert round_trip(job, Strict(userId=1)) == {"message": Strict(userId=1)}


def test_a_model_that_cannot_read_what_it_writes_fails_in_the_caller():
    class OneWay(BaseModel):
        user_id: int = Field(validation_alias="userId")

    def job(message: OneWay): ...

    assert problems(job, OneWay(userId=1))[0].startswith("written but not readable: ")


# What cannot be stored


@dataclass
class Floats:
    x: float | None
    more: list[Any] = field(default_factory=list)


class FloatModel(BaseModel):
    x: float | None


class FloatStruct(msgspec.Struct):
    x: float | None


@pytest.mark.parametrize("number", [NAN, float("inf"), float("-inf")])
@pytest.mark.parametrize("made", [Floats, FloatModel, FloatStruct])
def test_nan_is_refused_and_never_becomes_null(made, number):
    def alone(message: made): ...
    def among(message: made, n: int): ...
    def hidden(a: Any): ...

    with pytest.raises(InvalidPayload, match="NaN"):
        codec(alone).encode((made(x=number),), {})
    with pytest.raises(InvalidPayload, match="NaN"):
        codec(among).encode((made(x=number), 1), {})
    with pytest.raises(InvalidPayload, match="NaN"):
        codec(hidden).encode(([{"deep": made(x=number)}],), {})


@pytest.mark.parametrize("value", [NAN, [NAN], {"a": (1, {"b": float("inf")})}])
def test_nan_is_refused_in_plain_arguments(value):
    with pytest.raises(InvalidPayload, match="NaN"):
        ANYTHING.encode((value,), {})


def test_null_and_words_about_nan_are_fine():
    assert ANYTHING.encode(("NaN", [None, "-Infinity"]), {}) == b'{"a":"NaN","b":[null,"-Infinity"]}'


def test_nul_characters_are_refused():
    with pytest.raises(InvalidPayload, match="NUL"):
        ANYTHING.encode(("a\x00b",), {})


def test_too_deep_data_is_refused():
    deep = []
    for _ in range(70):
        deep = [deep]
    with pytest.raises(InvalidPayload, match="deeper"):
        ANYTHING.encode((deep,), {})


def test_the_limit_is_the_callers():
    def job(text: str): ...

    with pytest.raises(InvalidPayload, match=r"the input of job 'mail.send' is .* at most 50"):
        codec(job, limit=50).encode(("x" * 50,), {})


def circle():
    ring = []
    ring.append(ring)
    return ring


@pytest.mark.parametrize("value", [object(), "\ud800", b"\xff", circle(), lambda: 1, {object(): 1}])
def test_values_without_a_json_form_are_invalid_input(value):
    def job(a: Any): ...

    assert problems(job, value)[0].startswith("arguments: ")


def test_a_struct_with_values_without_a_json_form_is_invalid_input():
    class Loose(msgspec.Struct):
        a: Any

    def job(message: Loose): ...

    for value in (object(), "\ud800", circle()):
        assert problems(job, Loose(value))[0].startswith("message: ")


def test_a_validator_that_breaks_is_invalid_input():
    class Broken(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, value):
            raise KeyError("oops")

    def job(message: Broken): ...

    assert problems(job, {"n": 1}) == ["message: KeyError: 'oops'"]
    with pytest.raises(InvalidInput, match="KeyError"):
        codec(job).decode(b'{"n":1}')


def test_a_type_without_a_json_form_is_told_with_the_parameter():
    class Socket: ...

    def job(n: int, socket: Socket): ...

    with pytest.raises(ConfigError, match=r"job 'mail.send': parameter 'socket' of type .*Socket cannot be carried"):
        codec(job).encode((1, Socket()), {})


def test_structs_need_msgspec(monkeypatch):
    def job(message: Struct): ...
    def among(message: Struct, n: int): ...

    monkeypatch.setitem(sys.modules, "msgspec", None)
    for each in (job, among):
        with pytest.raises(ConfigError, match="Struct is read through msgspec, which is not installed"):
            codec(each).schema()


# Schemas


def test_the_schema_of_plain_parameters_is_closed_and_knows_what_is_required():
    def job(user_id: int, text: str = "hi"): ...

    schema = codec(job).schema()
    assert schema["title"] == "mail.send"
    assert schema["required"] == ["user_id"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["user_id"]["type"] == "integer"


@pytest.mark.parametrize("model", [Model, Data, Typed, Struct, Attrs])
def test_the_schema_of_a_single_model_is_the_models_own(model):
    def job(message: model): ...

    schema = codec(job).schema()
    if "$ref" in schema:
        schema = schema["$defs"][model.__name__]
    assert schema["type"] == "object"
    assert set(schema["properties"]) == {"user_id", "text"}
    assert schema["required"] == ["user_id"]


def test_a_schema_is_given_for_mixed_and_for_no_parameters():
    def job(a: Struct, b: list[Data]): ...
    def nothing(): ...

    assert codec(job).schema()["properties"]["a"] == {"title": "Struct", "type": "object"}
    assert codec(nothing).schema()["properties"] == {}


def test_the_room_is_imported_without_pydantic_and_its_friends():
    code = """
import sys
import tenure.model.codec, tenure.model.ids, tenure.model.priorities, tenure.model.retries
from tenure.model.codec import InputCodec, OutputCodec
from tenure.model.signatures import Signature
async def noop() -> None: ...
signature = Signature.of(noop, context_type=InputCodec)
made = InputCodec(signature, kind="noop")
assert made.decode(made.encode((), {})) == {}
assert OutputCodec.for_annotation(signature.returns, kind="noop").encode(None) == b"null"
print({"pydantic", "pydantic_core", "msgspec", "attrs"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
