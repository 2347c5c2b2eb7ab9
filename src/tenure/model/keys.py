"""Idempotency keys: where they come from and how long they are kept."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError, InvalidInput, InvalidPayload
from tenure.model.kinds import KeyMaker, KeyScope
from tenure.model.names import LONGEST_NAME, shown, size_in_bytes
from tenure.model.options import did_you_mean
from tenure.model.payloads import clean_text
from tenure.model.signatures import Signature

KeyGiven = str | bool | Callable[..., object]
"""A path that starts at a parameter, a function of the arguments, or True: the whole input."""

WAYS = 'give a path such as "message.payment_id", a function of the arguments, or True for the whole input'


def key_maker(given: KeyGiven, *, kind: str, signature: Signature, encode: Callable[[dict[str, Any]], bytes]) -> KeyMaker:
    """A callable takes the job's arguments; a dotted path starts at one of them; `encode` encodes them as the input."""
    defaults = {p.name: p.default for p in signature.parameters if not p.required}
    names = [p.name for p in signature.parameters]
    if given is True:
        return lambda arguments: input_key(arguments, signature, encode)
    if callable(given):
        pick = _picker(given, names, kind)
        return lambda arguments: checked(pick({**defaults, **arguments}), kind=kind)
    if not isinstance(given, str) or not given:
        raise ConfigError(f"job {kind!r}: key is {shown(given)}: {WAYS}")
    first, *rest = given.split(".")
    if first not in names:
        raise ConfigError(f"job {kind!r}: key={given!r}: there is no parameter named {first!r}; {did_you_mean(first, names)}")
    return lambda arguments: checked(_walk({**defaults, **arguments}[first], rest, given, kind), kind=kind)


def input_key(arguments: dict[str, Any], signature: Signature, encode: Callable[[dict[str, Any]], bytes]) -> str:
    """The same for the same input, whether it is given by position or by name, with or without defaults."""
    defaults = {p.name: p.default for p in signature.parameters if not p.required}
    try:
        text = encode({**defaults, **arguments})
    except (InvalidInput, InvalidPayload):  # a default that only means "not given"
        text = encode(arguments)
    return digest(json.loads(text))


def digest(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "input:" + hashlib.sha256(canonical.encode()).hexdigest()


def _picker(given: Callable[..., object], names: list[str], kind: str) -> Callable[[dict[str, Any]], object]:
    """By name if the names are the job's; else by position."""
    wanted = list(inspect.signature(given).parameters)
    if set(wanted) <= set(names):
        return lambda values: given(**{name: values[name] for name in wanted})
    if len(wanted) != len(names):
        raise ConfigError(
            f"job {kind!r}: key= takes ({', '.join(wanted)}), but the job takes ({', '.join(names)}): use the same names"
        )
    return lambda values: given(*(values[name] for name in names))


def checked(value: object, *, kind: str) -> str | None:
    """The key as text. None: this call has no key."""
    if value is None:
        return None
    if not has_lasting_text(value):
        raise InvalidPayload(
            f"job {kind!r}: the key is {shown(value)}, a {type(value).__name__}: give a text, a number or a UUID; "
            "key=True makes a key of the whole input"
        )
    key = value if isinstance(value, str) else str(value)
    if not key or clean_text(key, len(key)) != key:
        raise InvalidPayload(
            f"job {kind!r}: the key is {shown(key)}, but must be a text that is not empty, without NUL and lone surrogates"
        )
    if (size := size_in_bytes(key)) > LONGEST_NAME:
        raise InvalidPayload(
            f"job {kind!r}: the key {shown(key)} is {size} bytes long, but at most {LONGEST_NAME} are allowed: "
            "shorten it, or use a digest of it"
        )
    return key


def key_scope(given: Duration, *, what: str = "key_for") -> KeyScope:
    if given in ("live", "forever"):
        return cast("KeyScope", given)
    return to_seconds(given, what=f'{what} ("live", "forever" or a duration)')


def has_lasting_text(value: object) -> bool:
    """True for texts, numbers, UUIDs and dates. Not for collections and plain objects, whose text is an address in memory."""
    if isinstance(value, str):
        return True
    if isinstance(value, bool | bytes | bytearray | Iterable) or callable(value):
        return False
    return type(value).__str__ is not object.__str__ or type(value).__repr__ is not object.__repr__


def _walk(value: Any, path: list[str], given: str, kind: str) -> Any:
    for name in path:
        try:
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
        except AttributeError:
            raise InvalidPayload(
                f"job {kind!r}: key={given!r}: {type(value).__name__} has no {name!r}; correct the path, or give using(key=...)"
            ) from None
    return value
