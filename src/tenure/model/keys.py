"""Idempotency keys: where they come from and how long they stand."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError, InvalidPayload
from tenure.model.kinds import KeyScope
from tenure.model.payloads import clean_text
from tenure.model.signatures import Signature

LONGEST_KEY = 512

KeyGiven = str | Callable[..., object]


def key_maker(given: KeyGiven, *, kind: str, signature: Signature) -> Callable[[dict[str, Any]], str | None]:
    """A callable takes the job's own arguments; a dotted path starts at one of them: `"message.payment_id"`."""
    defaults = {p.name: p.default for p in signature.parameters if not p.required}
    names = [p.name for p in signature.parameters]
    if callable(given):
        pick = _picker(given, names, kind)
        return lambda arguments: checked(pick({**defaults, **arguments}), kind=kind)
    first, *rest = given.split(".")
    if first not in names:
        known = ", ".join(names) or "none"
        raise ConfigError(f"job {kind!r}: key={given!r} starts at {first!r}, which is no parameter (there are: {known})")
    return lambda arguments: checked(_walk({**defaults, **arguments}[first], rest, given, kind), kind=kind)


def _picker(given: Callable[..., object], names: list[str], kind: str) -> Callable[[dict[str, Any]], object]:
    """By name where the names are the job's own; else in the job's order."""
    wanted = list(inspect.signature(given).parameters)
    if set(wanted) <= set(names):
        return lambda values: given(**{name: values[name] for name in wanted})
    if len(wanted) != len(names):
        raise ConfigError(
            f"job {kind!r}: key= takes ({', '.join(wanted)}), but the job takes ({', '.join(names)}): name them alike"
        )
    return lambda values: given(*(values[name] for name in names))


def checked(value: object, *, kind: str) -> str | None:
    """None means: this call has no key."""
    if value is None:
        return None
    key = value if isinstance(value, str) else str(value)
    if not key or len(key) > LONGEST_KEY or clean_text(key) != key:
        raise InvalidPayload(f"job {kind!r}: a key is text of 1 to {LONGEST_KEY} characters without NUL, not {key[:40]!r}")
    return key


def key_scope(given: Duration, *, what: str = "key_for") -> KeyScope:
    if given in ("live", "forever"):
        return cast("KeyScope", given)
    return to_seconds(given, what=f'{what} ("live", "forever" or a duration)')


def _walk(value: Any, path: list[str], given: str, kind: str) -> Any:
    for name in path:
        try:
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
        except AttributeError:
            way_out = "mend the path, or give using(key=...)"
            raise InvalidPayload(
                f"job {kind!r}: key={given!r} leads nowhere: {type(value).__name__} has no {name!r}; {way_out}"
            ) from None
    return value
