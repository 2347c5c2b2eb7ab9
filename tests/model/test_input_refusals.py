import sys
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, field_validator
from tests.model.shapes import ANYTHING, NAN, Attrs, Data, Model, Struct, Typed, codec, problems
from tests.processes import run_process

from tenure.model.errors import ConfigError, InvalidInput, InvalidPayload


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


def test_a_type_without_a_json_form_is_reported_with_the_parameter():
    class Socket: ...

    def job(n: int, socket: Socket): ...

    with pytest.raises(ConfigError, match=r"job 'mail.send': parameter 'socket' of type .*Socket cannot be encoded"):
        codec(job).encode((1, Socket()), {})


def test_structs_need_msgspec(monkeypatch):
    def job(message: Struct): ...
    def among(message: Struct, n: int): ...

    monkeypatch.setitem(sys.modules, "msgspec", None)
    for each in (job, among):
        with pytest.raises(ConfigError, match="Struct is read by msgspec, which is not installed"):
            codec(each).schema()


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
    done = run_process([sys.executable, "-c", code], check=True)
    assert done.stdout.strip() == "set()"
