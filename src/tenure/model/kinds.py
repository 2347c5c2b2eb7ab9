"""A kind of job: a name, a function, and the options its definition gave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from tenure.model.codec import InputCodec, OutputCodec
from tenure.model.errors import ConfigError, UnknownKind
from tenure.model.retries import Retry
from tenure.model.signatures import Signature

RunIn = Literal["loop", "thread"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    name: str
    fn: Callable[..., Any]
    signature: Signature
    input: InputCodec
    output: OutputCodec
    queue: str
    priority: int
    retry: Retry
    timeout: timedelta | None
    capability: str | None
    lease: timedelta | None
    run_in: RunIn


class Registry(Mapping[str, Kind]):
    """The kinds an app knows, by name."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}

    def add(self, kind: Kind) -> None:
        known = self._kinds.get(kind.name)
        if known is not None and known.fn is not kind.fn:
            raise ConfigError(
                f"job {kind.name!r} is defined twice, by {_where(known.fn)} and {_where(kind.fn)}: give one of them another name="
            )
        self._kinds[kind.name] = kind

    def __getitem__(self, name: str) -> Kind:
        try:
            return self._kinds[name]
        except KeyError:
            raise UnknownKind(name, self._kinds) from None

    def __contains__(self, name: object) -> bool:
        return name in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


def _where(fn: Callable[..., Any]) -> str:
    return f"{fn.__module__}.{fn.__qualname__}"
