"""Typed JSON by pydantic, and by msgspec for its own types. Both are imported at first use only.

An engine validates in both directions: `dump` takes what a caller passes, `load` what is stored.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, get_origin

from tenure.model.annotations import adapt, is_foreign, msgspec_for
from tenure.model.errors import ConfigError, InputProblem
from tenure.model.payloads import check_numbers, clean_text

MOST_PROBLEMS = 20  # in one message; a list of thousands is not readable
LONGEST_PROBLEM = 500

_WAY_OUT = "use plain types, a pydantic model, a dataclass, a TypedDict, a msgspec Struct or an attrs class"

Refusal = Callable[[Sequence[InputProblem]], Exception]
"""Makes the error from the problems, one for each field."""


class CodecEngine(Protocol):
    def dump(self, value: Any) -> bytes: ...
    def load(self, text: str | bytes) -> Any: ...
    def schema(self) -> dict[str, Any]: ...


def engine_for(annotation: Any, *, what: str, root: str, refuse: Refusal) -> CodecEngine:
    """`what` names the payload in messages, `root` the value if the problem is not in one of its fields."""
    if is_foreign(annotation):
        return MsgspecEngine(annotation, what=what, root=root, refuse=refuse)
    return PydanticEngine(annotation, what=what, root=root, refuse=refuse)


class PydanticEngine:
    def __init__(self, annotation: Any, *, what: str, root: str, refuse: Refusal) -> None:
        from pydantic import PydanticSchemaGenerationError, TypeAdapter  # noqa: PLC0415 - slow to import

        self._what = what
        self._root = root
        self._refuse = refuse
        try:
            self._adapter = TypeAdapter(adapt(annotation))
            self._validate = self._adapter.validator.validate_python
            self._read = self._adapter.validator.validate_json
            self._write = self._adapter.serializer.to_json
            self._to_python = self._adapter.serializer.to_python
        except ConfigError:
            raise
        except PydanticSchemaGenerationError as error:
            raise _not_carried(what, root, annotation, _WAY_OUT) from error
        except Exception as error:
            raise _not_carried(what, root, annotation, str(error)) from error

    def dump(self, value: Any) -> bytes:
        try:
            valid = self._validate(value)
            # Aliases and round_trip: what is written must be readable again.
            text = self._write(valid, by_alias=True, round_trip=True, warnings=False, fallback=_plain)
        except Exception as error:  # noqa: BLE001 - raised as an error that the caller understands
            raise self._refuse(_problems(error, self._root)) from _cause(error)
        if b"null" in text:
            plain = self._to_python(valid, round_trip=True, warnings=False, fallback=_plain)
            check_numbers(plain, what=self._what)
        return text

    def load(self, text: str | bytes) -> Any:
        try:
            return self._read(text)
        except Exception as error:  # noqa: BLE001 - raised as an error that the caller understands
            raise self._refuse(_problems(error, self._root)) from _cause(error)

    def schema(self) -> dict[str, Any]:
        from pydantic.errors import PydanticInvalidForJsonSchema  # noqa: PLC0415 - slow to import

        try:
            return self._adapter.json_schema()
        except PydanticInvalidForJsonSchema as error:
            return {"description": f"not expressible as JSON Schema: {error.message}"}


class MsgspecEngine:
    def __init__(self, annotation: Any, *, what: str, root: str, refuse: Refusal) -> None:
        self._type = annotation
        self._class = get_origin(annotation) or annotation
        self._what = what
        self._root = root
        self._refuse = refuse
        self._msgspec = msgspec_for(annotation)
        try:
            self._write = self._msgspec.json.Encoder().encode
            self._read = self._msgspec.json.Decoder(annotation).decode
        except TypeError as error:
            raise _not_carried(what, root, annotation, str(error)) from error

    def dump(self, value: Any) -> bytes:
        try:
            valid = value if isinstance(value, self._class) else self._msgspec.convert(value, self._type)
            text: bytes = self._write(valid)
            if b"null" in text:
                check_numbers(self._msgspec.to_builtins(valid), what=self._what)
            self._read(text)  # msgspec checks types when it reads, not when an object is created
        except (ValueError, TypeError, RecursionError) as error:
            raise self._refuse(_problems(error, self._root)) from _cause(error)
        return text

    def load(self, text: str | bytes) -> Any:
        try:
            return self._read(text)
        except Exception as error:  # noqa: BLE001 - raised as an error that the caller understands
            raise self._refuse(_problems(error, self._root)) from _cause(error)

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = self._msgspec.json.schema(self._type)
        return schema


def _not_carried(what: str, root: str, annotation: Any, reason: str) -> ConfigError:
    shown = annotation.__qualname__ if isinstance(annotation, type) else annotation
    reason = clean_text(reason.partition("\n")[0], LONGEST_PROBLEM)
    return ConfigError(f"{what}: {root} of type {shown} cannot be encoded as JSON: {reason}")


def _plain(value: Any) -> Any:
    """For values without an annotation: the types of msgspec and attrs."""
    if is_foreign(type(value)):
        return msgspec_for(type(value)).to_builtins(value)
    raise TypeError(f"{type(value).__qualname__} has no JSON form")


def _problems(error: Exception, root: str) -> list[InputProblem]:
    pydantic, msgspec = sys.modules.get("pydantic_core"), sys.modules.get("msgspec")
    if pydantic is not None and isinstance(error, pydantic.ValidationError):
        return _from_pydantic(error, root)
    if msgspec is not None and isinstance(error, msgspec.ValidationError):
        return [_from_msgspec(error, root)]
    return [InputProblem(clean_text(f"{type(error).__name__}: {error}", LONGEST_PROBLEM), root=root)]


def _cause(error: Exception) -> Exception | None:
    """An error without the values, for the traceback: pydantic's own error prints the values it refused."""
    pydantic = sys.modules.get("pydantic_core")
    return None if pydantic is not None and isinstance(error, pydantic.ValidationError) else error


def _from_pydantic(error: Any, root: str) -> list[InputProblem]:
    # Without the input: arguments may be secrets, and this text is stored and logged.
    found = error.errors(include_url=False, include_context=False, include_input=False)
    problems = [InputProblem(one["msg"], one["loc"], root, one["type"].startswith("missing")) for one in found[:MOST_PROBLEMS]]
    left = len(found) - len(problems)
    return [*problems, InputProblem(f"and {left} more")] if left else problems


def _from_msgspec(error: Exception, root: str) -> InputProblem:
    message, _, path = str(error).partition(" - at `$")
    return InputProblem(message, _msgspec_path(path.rstrip("`")), root)


def _msgspec_path(text: str) -> tuple[str, ...]:
    """From `.items[0].name`. The keys of a mapping are not named: `[...]`."""
    return tuple(part for part in text.replace("[", ".").replace("]", "").split(".") if part)
