"""How a handler's arguments and result become JSON, and typed values again.

Plain parameters are one JSON object, `{"user_id": 1, "text": "hi"}`. A handler whose only parameter is a model
takes the model's own object, so that callers outside Python need not know the parameter's name.
Both sides validate: `encode` so that a mistake fails in the caller, `decode` because a payload may be older
than the code. Nothing is built before the first use, or `prepare()`.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from types import NoneType
from typing import Any, NotRequired

from tenure.model.annotations import adapt, field_names, is_model, without
from tenure.model.engines import CodecEngine, engine_for
from tenure.model.errors import InputProblem, InvalidInput, InvalidOutput
from tenure.model.payloads import MAX_PAYLOAD, check_json_text
from tenure.model.signatures import Parameter, Signature

log = logging.getLogger("tenure")

_NOTHING = b"{}"
_NULL = b"null"
_JSON_TYPES = {str, int, float, bool, NoneType, list, dict}


class InputCodec:
    def __init__(self, signature: Signature, *, kind: str, limit: int = MAX_PAYLOAD) -> None:
        self.kind = kind
        self.limit = limit
        self._what = f"the input of job {kind!r}"
        self._signature = signature
        self._parameters = signature.parameters
        self._positional = tuple(p.name for p in self._parameters if not p.keyword_only)
        self._names = frozenset(p.name for p in self._parameters)
        self._required = frozenset(p.name for p in self._parameters if p.required)
        self._fewest = _fewest_positional(self._parameters)
        self._proven = False
        self._bare = frozenset(p.name for p in self._parameters if not p.annotated)
        self._warned: set[tuple[str, type]] = set()
        self.model_parameter = _only_model(self._parameters)
        """The parameter whose own object is the whole input, if there is one."""

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        if not (self._parameters or args or kwargs):
            return _NOTHING
        return self.encode_values(self.bind(args, kwargs))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, as given. Arguments that use the function's defaults are left out."""
        if not kwargs and self._fewest <= len(args) <= len(self._positional):
            return dict(zip(self._positional, args, strict=False))
        values = dict(zip(self._positional, args, strict=False), **kwargs) if args else dict(kwargs)
        if len(values) == len(args) + len(kwargs) and self._names.issuperset(values) and values.keys() >= self._required:
            return values
        try:
            return dict(self._signature.bindable.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise InvalidInput(self.kind, self._misfits(values, str(error))) from None

    def _misfits(self, values: Mapping[str, Any], reason: str) -> list[InputProblem]:
        """Which arguments are missing or unknown. If none is: the reason that Python gives."""
        takes = f"it takes {self._signature.bindable}"
        missing = [
            InputProblem(f"a required argument is missing; {takes}", (p.name,), missing=True)
            for p in self._parameters
            if p.required and p.name not in values
        ]
        unknown = [InputProblem(f"an unexpected argument; {takes}", (name,)) for name in values if name not in self._names]
        return missing + unknown or [InputProblem(f"{reason}; {takes}")]

    def encode_values(self, values: dict[str, Any]) -> bytes:
        if not self._parameters:
            return _NOTHING
        if self.model_parameter is None:
            text = self._engine.dump(values)
        elif values:
            text = self._engine.dump(values[self.model_parameter.name])
        else:
            return _NULL  # `{}` could be a model too; null means the function's default
        check_json_text(text, what=self._what, limit=self.limit)
        if not self._proven:
            self._prove(text)
        if self._bare:
            self._warn_of_lost_types(values)
        return text

    def decode(self, text: str | bytes) -> dict[str, Any]:
        """The keyword arguments of the call, without the context."""
        if not self._parameters and text in (_NOTHING, "{}"):
            return {}
        if self.model_parameter is None:
            values: dict[str, Any] = self._engine.load(text)
            return values
        if not self.model_parameter.required and text in (_NULL, "null"):
            return {}
        return {self.model_parameter.name: self._load_model(text, self.model_parameter)}

    def _load_model(self, text: str | bytes, parameter: Parameter) -> Any:
        """The model's own object, or `{"message": {...}}` from callers that know only the function's parameters."""
        inner = self._argument(text, parameter.name)
        if inner is not None and self._fields is not None:
            return self._load_member(inner, parameter.name)
        try:
            return self._engine.load(text)
        except InvalidInput:
            if inner is None:
                raise
            return self._load_member(inner, parameter.name)

    def _load_member(self, text: bytes, name: str) -> Any:
        try:
            return self._engine.load(text)
        except InvalidInput as error:
            raise InvalidInput(self.kind, [problem.below(name) for problem in error.problems]) from error.__cause__

    def _argument(self, text: str | bytes, name: str) -> bytes | None:
        """The value under the parameter's name, if the model cannot have a field of that name."""
        if self._fields is not None and name in self._fields:
            return None
        start = text[: len(name) + 4]
        if (start if isinstance(start, str) else start.decode(errors="replace")) != f'{{"{name}":':
            return None
        given = json.loads(text)
        return json.dumps(given[name]).encode() if len(given) == 1 and isinstance(given[name], dict) else None

    @cached_property
    def _fields(self) -> frozenset[str] | None:
        return None if self.model_parameter is None else field_names(self.model_parameter.annotation)

    def _warn_of_lost_types(self, values: dict[str, Any]) -> None:
        """Once for each parameter: the handler would get a string where the caller passed a Decimal."""
        for name in self._bare.intersection(values):
            given = type(values[name])
            if given not in _JSON_TYPES and (name, given) not in self._warned:
                self._warned.add((name, given))
                log.warning(
                    "parameter has no annotation, so its value arrives as plain JSON (text, list or object): annotate it",
                    extra={"kind": self.kind, "parameter": name, "given": given.__name__},
                )

    def schema(self) -> dict[str, Any]:
        return self._engine.schema()

    def prepare(self) -> None:
        """Builds now what the first use would build."""
        if self._parameters:
            _ = self._engine

    def _prove(self, text: bytes) -> None:
        """Once, so that a model that cannot read what it writes (because of an alias or a serializer) fails in the caller."""
        try:
            self.decode(text)
        except InvalidInput as error:
            problems = [InputProblem(f"written but not readable: {problem}") for problem in error.problems]
            raise InvalidInput(self.kind, problems) from error
        self._proven = True

    @cached_property
    def _engine(self) -> CodecEngine:
        refuse = partial(InvalidInput, self.kind)
        if self.model_parameter is not None:
            model = self.model_parameter
            return engine_for(model.annotation, what=self._what, root=model.name, refuse=refuse)
        try:
            return engine_for(self._arguments(), what=self._what, root="arguments", refuse=refuse)
        except Exception:
            self._blame_parameter()
            raise

    def _blame_parameter(self) -> None:
        """All parameters failed as one: find the one to name."""
        for p in self._parameters:
            engine_for(p.annotation, what=self._what, root=f"parameter {p.name!r}", refuse=ValueError)

    def _arguments(self) -> Any:
        from pydantic import ConfigDict  # noqa: PLC0415 - slow to import
        from typing_extensions import TypedDict  # noqa: PLC0415 - comes with pydantic

        make: Any = TypedDict
        fields = {p.name: adapt(p.annotation) for p in self._parameters}
        optional = {name: NotRequired[field] for name, field in fields.items() if name not in self._required}
        arguments = make(self.kind, fields | optional)
        arguments.__pydantic_config__ = ConfigDict(extra="forbid")
        return arguments


class OutputCodec:
    def __init__(self, annotation: Any, *, kind: str, limit: int = MAX_PAYLOAD) -> None:
        self.kind = kind
        self.limit = limit
        self._what = f"the result of job {kind!r}"
        self._annotation = annotation
        self._none_is_fine = annotation is Any or annotation is NoneType

    @classmethod
    def for_annotation(
        cls, annotation: Any, *, kind: str, limit: int = MAX_PAYLOAD, outcomes: tuple[type, ...] = ()
    ) -> OutputCodec:
        """`outcomes` are the types that a handler may return instead of a result; they are removed from a union."""
        if annotation is None or annotation is inspect.Signature.empty:
            annotation = NoneType if annotation is None else Any
        return cls(without(annotation, outcomes), kind=kind, limit=limit)

    @property
    def is_always_none(self) -> bool:
        """Its handlers return nothing: `-> None`."""
        return self._annotation is NoneType

    def encode(self, value: Any) -> bytes:
        if value is None and self._none_is_fine:
            return _NULL
        text = self._engine.dump(value)
        check_json_text(text, what=self._what, limit=self.limit)
        return text

    def decode(self, text: str | bytes) -> Any:
        if self._none_is_fine and text in (_NULL, "null"):
            return None
        return self._engine.load(text)

    def schema(self) -> dict[str, Any]:
        return self._engine.schema()

    def prepare(self) -> None:
        """Builds now what the first use would build."""
        if not self.is_always_none:
            _ = self._engine

    @cached_property
    def _engine(self) -> CodecEngine:
        return engine_for(self._annotation, what=self._what, root="result", refuse=self._refusal)

    def _refusal(self, problems: Sequence[InputProblem]) -> InvalidOutput:
        return InvalidOutput(f"{self._what} does not fit its annotation: " + "; ".join(map(str, problems)))


def _fewest_positional(parameters: tuple[Parameter, ...]) -> int:
    """How many positional arguments make a call complete. If no number does: more than there are parameters."""
    if any(p.required and p.keyword_only for p in parameters):
        return len(parameters) + 1
    return sum(p.required for p in parameters)


def _only_model(parameters: tuple[Parameter, ...]) -> Parameter | None:
    return parameters[0] if len(parameters) == 1 and is_model(parameters[0].annotation) else None
