"""Makes calls from input that a person typed: validated by the job's definition, or unchecked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from tenure.client.job import Call, Job
from tenure.client.named import call_unchecked
from tenure.model.codec import InputCodec
from tenure.model.errors import InvalidInput
from tenure.model.payloads import plain_json

NO_INPUT: Final[Any] = type("NoInput", (), {"__repr__": lambda _: "NO_INPUT"})()
"""Sentinel: no input was given. None would be the input null."""


@dataclass(frozen=True, slots=True)
class TypedInput:
    """Input as it was typed."""

    value: Any
    texts: dict[str, str] = field(default_factory=dict)
    """Arguments that were read as JSON but may have been meant as text, as they were typed."""


def checked_call(job: Job[Any, Any, Any, Any], given: TypedInput, options: dict[str, Any], *, by: str) -> Call[Any]:
    """Raises `InvalidInput`."""
    values = {} if given.value is NO_INPUT else decode_typed(job.kind.input, given)
    return job.using(**options).call(**values).sent_by(by)


def decode_typed(codec: InputCodec, given: TypedInput) -> dict[str, Any]:
    """The arguments, with their types. `zip=01234` and `zip=94107` are text if the job expects text."""
    value = given.value
    try:
        return codec.decode(plain_json(value, what="the input"))
    except InvalidInput as error:
        fewest, best = len(error.problems), error
    for name, text in given.texts.items():
        try:
            return codec.decode(plain_json({**value, name: text}, what="the input"))
        except InvalidInput as error:
            if len(error.problems) < fewest:
                value, fewest, best = {**value, name: text}, len(error.problems), error
    raise best


def unchecked_call(kind: str, given: TypedInput, options: dict[str, Any], *, by: str) -> Call[Any]:
    """A call of a job that this app need not define."""
    value = {} if given.value is NO_INPUT else given.value
    return call_unchecked(kind, value, **options).sent_by(by)
