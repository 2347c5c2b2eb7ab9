"""Reads the input of `tenure enqueue`: JSON, and single arguments as NAME=VALUE."""

from __future__ import annotations

from typing import Any

import click

from tenure.cli.param_types import read_json
from tenure.client.calls_from_text import NO_INPUT, TypedInput


def read_input(value: Any, args: tuple[str, ...]) -> TypedInput:
    """`args` are added to the object `value`, and override it."""
    if not args:
        return TypedInput(value)
    if value is not NO_INPUT and not isinstance(value, dict):
        raise click.UsageError("--arg adds to a JSON object, but the input is not an object: give one or the other")
    merged, texts = ({} if value is NO_INPUT else dict(value)), {}
    for arg in args:
        name, equals, text = arg.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--arg {arg}: give it as NAME=VALUE")
        merged[name], is_json = _read_value(text)
        if is_json:
            texts[name] = text
    return TypedInput(merged, texts)


def _read_value(text: str) -> tuple[Any, bool]:
    try:
        return read_json(text), True
    except ValueError:
        return text, False
