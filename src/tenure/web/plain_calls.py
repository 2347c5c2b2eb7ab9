"""Calls without options, of kinds that this process defines: most requests ask for such ones."""

from __future__ import annotations

from typing import Any

from tenure.client.calls import Call, CallMaker
from tenure.client.options import Options, call_options
from tenure.model.errors import InvalidPayload
from tenure.model.kinds import Kind, Registry
from tenure.model.payloads import plain_json


class PlainCalls:
    """Keeps what is the same for all calls of a kind: to check the options again costs more than to check the arguments."""

    def __init__(self, kinds: Registry) -> None:
        self._kinds = kinds
        self._makers: dict[str, tuple[Kind, CallMaker, Options]] = {}

    def make(self, name: str, args: dict[str, Any]) -> tuple[Call[Any], Options]:
        """Raises `InvalidInput` for arguments that do not fit."""
        kind = self._kinds[name]
        kept = self._makers.get(name)
        if kept is None or kept[0] is not kind:
            options = call_options(name, "dispatch")
            kept = self._makers[name] = kind, CallMaker(kind, options), options
        _, maker, options = kept
        return maker.of_arguments(kind, (), _typed(kind, args)), options


def _typed(kind: Kind, args: dict[str, Any]) -> dict[str, Any]:
    if not args:
        return {}
    try:
        text = plain_json(args, what=f"the input of job {kind.name!r}")
    except InvalidPayload:
        return args  # too large with every character escaped: the job's own codec decides
    return kind.input.decode(text)
