"""The shapes of input that the tests of codecs share."""

import typing
from dataclasses import dataclass
from enum import Enum
from typing import Any, NotRequired, TypeVar

import attrs
import msgspec
import pytest
import typing_extensions
from pydantic import BaseModel

from tenure.model.codec import InputCodec
from tenure.model.errors import InvalidInput
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
    return [str(problem) for problem in caught.value.problems]


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


def anything(a: Any, b=None): ...


ANYTHING = codec(anything)
