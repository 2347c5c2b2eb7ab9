import json
import typing
from dataclasses import dataclass

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field
from tests.model.shapes import Attrs, Ctx, Data, Model, Struct, T, Typed, TypedExtension, codec, problems, round_trip

from tenure.model.errors import InvalidInput


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
