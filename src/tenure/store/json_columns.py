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
        return _plain if inner is _plain else lambda value: None if value is None else inner(value)
    if origin is list:
        read_item = _reader(arguments[0])
        return _list if read_item is _plain else lambda value: [read_item(item) for item in value or ()]
    if origin is dict:
        read_value = _reader(arguments[1])
        return _dict if read_value is _plain else lambda value: {key: read_value(item) for key, item in (value or {}).items()}
    if hasattr(hint, "_fields") or is_dataclass(hint):
        return _record_reader(hint)
    return _FROM_TEXT.get(hint, _plain)


def _plain(value: Any) -> Any:
    return value


def _list(value: Any) -> Any:
    return value or []


def _dict(value: Any) -> Any:
    return value or {}


def _text_reader(hint: Any) -> Read:
    read = _reader(hint)
    if NoneType in get_args(hint):
        return lambda text: None if text is None else read(json.loads(text))
    empty: str = {list: "[]", dict: "{}"}.get(get_origin(hint) or hint, "null")
    return lambda text: read(json.loads(empty if text is None else text))


def _record_reader(type_: Any) -> Read:
    hints = get_type_hints(type_, include_extras=True)
    readers = {name: read for name, hint in hints.items() if (read := _reader(hint)) is not _plain}

    def read_record(value: dict[str, Any]) -> Any:
        for name, read in readers.items():
            if name in value:
                value[name] = read(value[name])
        return type_(**value)

    return read_record
