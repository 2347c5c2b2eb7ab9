"""Columns of JSON text, decoded into typed values: a row declares `jobs: Json[list[ReapedJob]]`, and its users never see the
text.

Values are plain JSON, datetime, UUID, NamedTuples and dataclasses of these, lists and dicts of them. A null is an empty list or
dict, unless the type allows None.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

T = TypeVar("T")
Read = Callable[[Any], Any]


_FROM_TEXT: Mapping[Any, Read] = {datetime: datetime.fromisoformat, UUID: UUID}


class _JsonText:
    """Marks a field whose column is JSON text."""


Json = Annotated[T, _JsonText]


def is_json(hint: Any) -> bool:
    return get_origin(hint) is Annotated and _JsonText in hint.__metadata__


@cache
def json_readers(row_type: Any) -> Mapping[str, Read]:
    """By name, how to read each field of a NamedTuple that is JSON text."""
    hints = get_type_hints(row_type, include_extras=True)
    return {name: _reader(hint) for name, hint in hints.items() if is_json(hint)}


def _reader(hint: Any) -> Read:
    if is_json(hint):
        return _text_reader(get_args(hint)[0])
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and NoneType in arguments:
        [inner] = [_reader(argument) for argument in arguments if argument is not NoneType]
        return lambda value: None if value is None else inner(value)
    if origin is list:
        read_item = _reader(arguments[0])
        return lambda value: [read_item(item) for item in value or ()]
    if origin is dict:
        read_value = _reader(arguments[1])
        return lambda value: {key: read_value(item) for key, item in value.items()}
    if hasattr(hint, "_fields") or is_dataclass(hint):
        return _record_reader(hint)
    return _FROM_TEXT.get(hint, lambda value: value)


def _text_reader(hint: Any) -> Read:
    read = _reader(hint)
    empty: str = {list: "[]", dict: "{}"}.get(get_origin(hint) or hint, "null")
    return lambda text: read(json.loads(empty if text is None else text))


def _record_reader(type_: Any) -> Read:
    readers = {name: _reader(hint) for name, hint in get_type_hints(type_, include_extras=True).items()}
    return lambda value: type_(**{name: readers[name](item) for name, item in value.items()})
