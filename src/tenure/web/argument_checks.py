"""Checks arguments by the JSON Schema that a worker has published. Neither of them is ours: they must not make this process read
other addresses or files, nor keep it busy. The worker checks them again."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any
from uuid import UUID

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from pydantic import StringConstraints, TypeAdapter
from pydantic import ValidationError as NoMatch
from pydantic_core import SchemaError as NotRegex
from referencing import Registry
from referencing.exceptions import Unresolvable

from tenure.web import heavy_requests
from tenure.web.problems import FieldProblem, short_name

MOST_AT_ONCE = 1000
"""Values, nested ones included, that are checked in the event loop. A body may have 500,000, which take two seconds: they are
checked in a thread."""

AT_ONCE_WITHIN = 0.02
"""Seconds of a check in the event loop; then it is made again in a thread."""

WITHIN = 5.0
"""Seconds of a check in a thread. With a schema that nests alternatives, the time can double with each level of the arguments.
All are of the processor: arguments are not refused because the machine is busy."""

MOST_PROBLEMS = 20
LONGEST_MESSAGE = 200

Keyword = Callable[[Any, Any, Any, Any], Any]
"""`keyword(validator, value, instance, schema)` yields errors."""


class TooSlow(Exception):  # noqa: N818 - reads as the fact it states
    """The time for the check is over, and nothing is wrong in what was checked."""


class _Ended(Exception):  # noqa: N818 - never leaves this module
    """The time for the check is over."""


class ArgumentCheck:
    """One schema, read once."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Raises `ValueError` for a schema that cannot be used."""
        given = {name: value for name, value in schema.items() if name != "$schema"}
        try:
            # Without the check of formats: a regular expression may be one of Rust, as pydantic's are.
            Draft202012Validator.check_schema(given, format_checker=FormatChecker(()))
        except (SchemaError, RecursionError) as error:
            raise ValueError("not a JSON Schema") from error
        if _names_dialect(given):
            raise ValueError("a part of the schema names another dialect, with keywords of its own")
        self._validator = _Validator(given, registry=Registry())

    async def problems(self, value: Any, where: str) -> list[FieldProblem]:
        """What does not fit, at most 20. Raises `TooSlow`, and a problem if the turn of the request does not come."""
        if not _is_large(value):
            with suppress(TooSlow):
                return self.problems_within(AT_ONCE_WITHIN, value, where)
        return await heavy_requests.current.get().run(partial(self.problems_within, WITHIN, value, where))

    def problems_within(self, seconds: float, value: Any, where: str) -> list[FieldProblem]:
        """The same in this thread."""
        found: list[FieldProblem] = []
        _deadline.set(time.thread_time() + seconds)
        try:
            for error in self._validator.iter_errors(value):
                path = ".".join([where, *map(short_name, error.absolute_path)])
                found.append({"path": path, "message": error.message[:LONGEST_MESSAGE]})
                if len(found) == MOST_PROBLEMS:
                    break
        except _Ended:
            if not found:
                raise TooSlow from None
        except (Unresolvable, RecursionError, OverflowError):
            return found  # by the schema, or by numbers that no float can hold
        return found


_deadline: ContextVar[float] = ContextVar("deadline")


def _timed(keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        if time.thread_time() > _deadline.get():
            raise _Ended
        return keyword(validator, value, instance, schema)

    return check


@lru_cache(maxsize=1000)
def _matcher(pattern: str) -> TypeAdapter[str] | None:
    """In linear time, as pydantic itself does it: Python's `re` can take years. None: only Python can read the pattern."""
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
    except NotRegex:
        return None


def _matches(pattern: str, text: str) -> bool:
    matcher = _matcher(pattern)
    if matcher is None:
        return True
    try:
        matcher.validate_python(text, strict=True)
    except NoMatch:
        return False
    return True


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError(f"{instance[:LONGEST_MESSAGE]!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    if isinstance(instance, dict):
        for pattern, inner in patterns.items():
            for name, value in instance.items():
                if _matcher(pattern) is not None and _matches(pattern, name):
                    yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extra = [name for name in instance if name not in known and not any(_matches(pattern, name) for pattern in patterns)]
    if isinstance(allowed, dict):
        for name in extra:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed:
        for name in extra[:MOST_PROBLEMS]:
            yield ValidationError("an unexpected argument", path=[name])


def _required(validator: Any, names: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    if isinstance(instance, dict):
        for name in names:
            if name not in instance:
                yield ValidationError("a required argument is missing", path=[name])


def _any_of(validator: Any, alternatives: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Of `X | None`, what is wrong in X. Of several types, only that none of them fits."""
    others = [one for one in alternatives if not (isinstance(one, dict) and one.get("type") == "null")]
    if len(others) == 1 and instance is not None:
        yield from validator.descend(instance, others[0])
    else:
        yield from Draft202012Validator.VALIDATORS["anyOf"](validator, alternatives, instance, schema)


def _one_of(validator: Any, alternatives: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Of models that a field tells apart, what is wrong in the one that it names."""
    reference = _discriminated(schema.get("discriminator"), instance)
    if reference is None:
        yield from Draft202012Validator.VALIDATORS["oneOf"](validator, alternatives, instance, schema)
    else:
        yield from validator.descend(instance, {"$ref": reference})


def _discriminated(discriminator: Any, instance: Any) -> str | None:
    """Of OpenAPI: `{"propertyName": "kind", "mapping": {"cat": "#/$defs/Cat"}}`."""
    if not isinstance(discriminator, dict) or not isinstance(instance, dict):
        return None
    mapping, value = discriminator.get("mapping"), instance.get(str(discriminator.get("propertyName")))
    reference = mapping.get(value) if isinstance(mapping, dict) and isinstance(value, str) else None
    return reference if isinstance(reference, str) else None


_READERS: dict[str, TypeAdapter[Any]] = {
    **{name: TypeAdapter(UUID) for name in ("uuid", "uuid1", "uuid3", "uuid4", "uuid5", "uuid6", "uuid7", "uuid8")},
    "date-time": TypeAdapter(dt.datetime),
    "date": TypeAdapter(dt.date),
    "time": TypeAdapter(dt.time),
    "duration": TypeAdapter(dt.timedelta),
    "ipv4": TypeAdapter(IPv4Address),
    "ipv6": TypeAdapter(IPv6Address),
}
"""By format. Texts of other formats are left to the worker."""


def _format(validator: Any, name: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    """As pydantic reads them, which takes more than the standards of these formats do."""
    reader = _READERS.get(name) if isinstance(name, str) and isinstance(instance, str) else None
    if reader is None:
        return
    try:
        reader.validate_python(instance)
    except NoMatch as error:
        yield ValidationError(error.errors(include_url=False, include_context=False, include_input=False)[0]["msg"])


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    """Compares texts: to compare each value with each other one can take hours."""
    if unique and isinstance(instance, list) and len({json.dumps(item, sort_keys=True) for item in instance}) < len(instance):
        yield ValidationError("values occur more than once")


def _nothing(validator: Any, value: Any, instance: Any, schema: Any) -> None:
    """For keywords that need a second look at the whole value: no schema of Python types has them."""


_KEYWORDS: dict[str, Keyword] = {
    **Draft202012Validator.VALIDATORS,
    "required": _required,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "format": _format,
    "uniqueItems": _unique_items,
    "unevaluatedItems": _nothing,
    "unevaluatedProperties": _nothing,
}

_Validator = extend(Draft202012Validator, {name: _timed(keyword) for name, keyword in _KEYWORDS.items()})


def _names_dialect(schema: Any) -> bool:
    """Such a part would be checked by another class, without the bounds of this one."""
    if isinstance(schema, dict):
        return "$schema" in schema or any(map(_names_dialect, schema.values()))
    return isinstance(schema, list) and any(map(_names_dialect, schema))


def _is_large(value: Any) -> bool:
    count, left = 0, [value]
    while left and count <= MOST_AT_ONCE:
        item = left.pop()
        count += 1
        if isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
    return count > MOST_AT_ONCE
