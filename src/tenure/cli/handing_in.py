"""From words to a call that can be handed in: checked by the job's definition, or as given."""

from __future__ import annotations

from typing import Any, Final

import click

from tenure.cli.asking import Asker
from tenure.cli.options import whoami
from tenure.cli.types import read_json
from tenure.client.job import Call
from tenure.client.named import call_unchecked
from tenure.model.codec import InputCodec
from tenure.model.errors import InvalidInput
from tenure.model.payloads import plain_json

NOTHING: Final[Any] = type("Nothing", (), {"__repr__": lambda _: "NOTHING"})()
"""No input was given; null would be some."""


class Given:
    """The input as it was typed."""

    def __init__(self, value: Any, texts: dict[str, str]) -> None:
        self.value = value
        self.texts = texts
        """Arguments that read as JSON, and may have been meant as the text they are."""


def read(value: Any, args: tuple[str, ...]) -> Given:
    if not args:
        return Given(value, {})
    if value is not NOTHING and not isinstance(value, dict):
        raise click.UsageError("--arg adds to an object, but the JSON is none: give one or the other")
    merged, texts = ({} if value is NOTHING else dict(value)), {}
    for arg in args:
        name, equals, text = arg.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--arg {arg}: give it as NAME=VALUE")
        merged[name], is_json = _value(text)
        if is_json:
            texts[name] = text
    return Given(merged, texts)


def _value(text: str) -> tuple[Any, bool]:
    try:
        return read_json(text), True
    except ValueError:
        return text, False


def checked(ask: Asker, kind: str, given: Given, told: dict[str, Any]) -> Call[Any]:
    """Raises `UnknownKind` or `InvalidInput`."""
    job = ask.job(kind)
    values = {} if given.value is NOTHING else fitting(job.kind.input, given)
    return job.using(**told).call(**values).sent_by(whoami())


def fitting(codec: InputCodec, given: Given) -> dict[str, Any]:
    """The values, typed. An argument such as `zip=01234` or `zip=94107` is text where the job wants text."""
    value = given.value
    try:
        return codec.decode(plain_json(value, what="the input"))
    except InvalidInput as error:
        worst, fault = len(error.problems), error
    for name, text in given.texts.items():
        try:
            return codec.decode(plain_json({**value, name: text}, what="the input"))
        except InvalidInput as error:
            if len(error.problems) < worst:
                value, worst, fault = {**value, name: text}, len(error.problems), error
    raise fault


def unchecked(kind: str, given: Given, told: dict[str, Any]) -> Call[Any]:
    """What `tenure.enqueue` takes."""
    value = {} if given.value is NOTHING else given.value
    return call_unchecked(kind, value, **told).sent_by(whoami())
