import inspect
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict
from uuid import UUID, uuid4

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tenure.model.codec import OutputCodec
from tenure.model.errors import InvalidOutput, InvalidPayload


class Model(BaseModel):
    user_id: int


@dataclass
class Data:
    user_id: int


class Typed(TypedDict):
    user_id: int


class Struct(msgspec.Struct):
    user_id: int


@attrs.define
class Attrs:
    user_id: int


class Snooze:
    pass


class Fail:
    pass


def codec(annotation, **options):
    return OutputCodec.for_annotation(annotation, kind="mail.send", **options)


@pytest.mark.parametrize("annotation", [None, type(None), Any, inspect.Signature.empty, int | None])
def test_nothing_is_null(annotation):
    made = codec(annotation)
    assert made.encode(None) == b"null"
    assert made.decode(b"null") is None
    assert made.decode("null") is None


@pytest.mark.parametrize("model", [Model, Data, Struct, Attrs])
def test_a_model_is_decoded_with_its_type(model):
    made = codec(model)
    assert made.encode(model(user_id=1)) == b'{"user_id":1}'
    assert made.decode(b'{"user_id":1}') == made.decode('{"user_id":1}') == model(user_id=1)


@pytest.mark.parametrize("model", [Model, Data, Struct, Attrs])
def test_a_list_of_models_is_decoded_with_its_type(model):
    made = codec(list[model] | None)
    assert made.decode(made.encode([model(user_id=1)])) == [model(user_id=1)]


def test_a_typed_dict_is_checked():
    assert codec(Typed).encode({"user_id": 1}) == b'{"user_id":1}'
    with pytest.raises(InvalidOutput, match="user_id: Field required"):
        codec(Typed).encode({})


def test_plain_types_are_decoded_with_their_type():
    made = codec(dict[UUID, set[datetime]])
    value = {uuid4(): {datetime(2026, 1, 1, tzinfo=UTC)}}
    assert made.decode(made.encode(value)) == value


@pytest.mark.parametrize(
    ("annotation", "value", "told"),
    [
        (Model, {"user_id": "x"}, "user_id: Input should be a valid integer"),
        (Model, None, "result: "),
        (Struct, {"user_id": "x"}, "user_id: Expected `int`"),
        (int, "x", "result: Input should be a valid integer"),
        (None, 5, "result: Input should be None"),
        (Any, object(), "result: "),
        (Any, "\ud800", "result: "),
    ],
)
def test_what_the_annotation_does_not_allow_is_refused_with_job_and_field(annotation, value, told):
    with pytest.raises(InvalidOutput) as caught:
        codec(annotation).encode(value)
    assert "the result of job 'mail.send'" in str(caught.value)
    assert told in str(caught.value)


def test_without_an_annotation_rich_values_are_written_all_the_same():
    id_ = uuid4()
    value = {"id": id_, "model": Model(user_id=1), "data": Data(2), "struct": Struct(3), "attrs": Attrs(4), "set": {5}}
    assert json.loads(codec(Any).encode(value)) == {
        "id": str(id_),
        "model": {"user_id": 1},
        "data": {"user_id": 2},
        "struct": {"user_id": 3},
        "attrs": {"user_id": 4},
        "set": [5],
    }


def test_a_stored_result_that_no_longer_fits_is_refused():
    with pytest.raises(InvalidOutput, match="user_id"):
        codec(Model).decode(b'{"id":1}')


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (float, float("nan")),
        (Any, {"a": [float("inf")]}),
        (Model | float, float("-inf")),
        (list[float | None], [float("nan")]),
    ],
)
def test_nan_is_refused(annotation, value):
    with pytest.raises(InvalidPayload, match="NaN"):
        codec(annotation).encode(value)


def test_the_limit_is_the_callers():
    with pytest.raises(InvalidPayload, match=r"the result of job 'mail.send' is 52 bytes"):
        codec(str, limit=51).encode("x" * 50)


def test_outcomes_are_not_part_of_the_result():
    made = codec(Model | Snooze | Fail, outcomes=(Snooze, Fail))
    assert made.encode(Model(user_id=1)) == b'{"user_id":1}'
    assert made.schema()["title"] == "Model"
    assert codec(Snooze | None, outcomes=(Snooze,)).encode(None) == b"null"
    assert codec(Snooze, outcomes=(Snooze,)).encode(None) == b"null"


def test_the_schema_is_the_annotations():
    assert codec(int).schema() == {"type": "integer"}
    assert codec(None).schema() == {"type": "null"}
    assert codec(Any).schema() == {}
    assert "user_id" in json.dumps(codec(Struct).schema())


@given(st.dictionaries(st.text(st.characters(codec="utf-8", min_codepoint=1)), st.integers() | st.none() | st.booleans()))
def test_untyped_results_are_decoded_unchanged(value):
    made = codec(Any)
    assert made.decode(made.encode(value)) == value
