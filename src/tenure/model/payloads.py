"""What PostgreSQL can store: JSON without NUL, NaN and lone surrogates, and text that is always storable."""

from __future__ import annotations

import json
import math
import re
import traceback
from decimal import Decimal
from typing import Any, TypeAlias

from tenure.model.errors import InvalidPayload
from tenure.model.failures import Failure

Json: TypeAlias = str
"""JSON text that PostgreSQL can store."""

MAX_PAYLOAD = 1024 * 1024  # bytes; larger rows slow every claim and vacuum of their table
MAX_DEPTH = 64  # far from PostgreSQL's stack limit, and from any parser's
MAX_DIGITS = 4300  # what Python reads back (sys.int_info.default_max_str_digits); PostgreSQL would store 131 072
MAX_TEXT = 16_384  # characters of an error or a log line
TOO_DEEP = "[nested too deeply to be shown]"

# One byte is found several times faster than several: search for the rare first letter, then for the word.
_BACKSLASH, _N, _I = b"\\NI"
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# A whole surrogate pair first, so that what is captured as a surrogate is a lone one.
_ESCAPE = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u(....)|\\.", re.DOTALL)
_SURROGATE = re.compile(rb"[dD][89a-fA-F]")
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (MAX_DIGITS + 1))
_TO_SQUARE = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def with_members(text: Json, **members: Json) -> Json:
    """A JSON object with more members, which are JSON already. The object must not be empty. To parse it, or a large output, only
    to write it again would cost more."""
    more = ",".join([f'"{name}":{value}' for name, value in members.items()])
    return f"{text[:-1]},{more}}}"


def check_json_text(text: bytes, *, what: str, limit: int) -> None:
    """Refuses well-formed JSON that PostgreSQL would refuse. Runs the expensive checks only if a cheap one finds something."""
    size = len(text)
    if size > limit:
        raise InvalidPayload(
            f"{what} is {size} bytes, but at most {limit} are allowed: store big data elsewhere and pass a reference to it"
        )
    if _BACKSLASH in text and b"\\u" in text:
        _check_escapes(text, what)
    if (_N in text and b"NaN" in text) or (_I in text and b"Infinity" in text):
        _check_literals(_without_strings(text), what)
    # A level needs one byte to open and one to close.
    if size > 2 * MAX_DEPTH and text.count(b"[") + text.count(b"{") > MAX_DEPTH:
        _check_depth(_without_strings(text), what)
    if size > MAX_DIGITS and _LONG_NUMBER.search(text) and _LONG_NUMBER.search(_without_strings(text)):
        raise InvalidPayload(f"{what} holds a number of more than {MAX_DIGITS} digits: pass it as text")


def check_numbers(value: Any, *, what: str) -> None:
    """Refuses NaN and infinities in plain Python data: some encoders silently write them as null."""
    open_ends = [value]
    while open_ends:
        item = open_ends.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                raise _not_a_number(what, item)
        elif isinstance(item, dict):
            open_ends.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            open_ends.extend(item)


def plain_json(value: Any, *, what: str) -> Json:
    """Plain data as compact JSON that PostgreSQL can store."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidPayload(f"{what} cannot be stored as JSON ({error}): use plain values") from None
    check_json_text(text.encode(), what=what, limit=MAX_PAYLOAD)
    return text


def as_stored(text: Json) -> Json:
    """The same JSON as PostgreSQL returns it from a column of type jsonb: members ordered by the length of their names, numbers
    without exponents."""
    if "{" not in text and "e" not in text and "E" not in text and "-0" not in text:
        return text
    value = json.loads(text, object_pairs_hook=_stored_object, parse_float=_stored_number)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _stored_object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(sorted(dict(members).items(), key=lambda member: (len(name := member[0].encode()), name)))


def _stored_number(text: str) -> float | int:
    if "e" in text or "E" in text:
        text = format(Decimal(text), "f")
        if "." not in text:
            return int(text)
    return float(text) + 0.0  # there is no negative zero


def read_json(text: str) -> Any:
    """What is stored, for display. SQL can write what is nested so deeply that Python cannot read it."""
    try:
        return json.loads(text)
    except RecursionError:
        return TOO_DEEP


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    """What a text column can hold, at most `limit` characters: the middle of a longer text is cut out."""
    if len(text) > limit:
        text = _shortened(text, limit)
    return _NOT_STORABLE.sub("\ufffd", text)


def describe_exception(exc: BaseException) -> str:
    """The failure as text that can be stored, see `Failure`. Never raises, because failures are reported this way."""
    try:
        was_raised = exc.__traceback__ is not None or exc.__cause__ is not None
        return clean_text(Failure.of(exc, "".join(traceback.format_exception(exc)) if was_raised else "").write())
    except Exception as error:  # noqa: BLE001 - an exception's own code may raise anything
        return f"{type(exc).__name__} (its traceback could not be written: {type(error).__name__})"


def _check_escapes(text: bytes, what: str) -> None:
    for escape in _ESCAPE.finditer(text):
        code = escape[1]
        if code == b"0000":
            raise InvalidPayload(f"{what} holds a NUL character (\\u0000), which PostgreSQL cannot store: remove it")
        if code is not None and _SURROGATE.match(code):
            raise InvalidPayload(
                f"{what} holds half a character (\\u{code.decode()}, a lone surrogate), which is not valid text: remove it"
            )


def _check_literals(bare: bytes, what: str) -> None:
    for literal in (b"NaN", b"Infinity"):
        if literal in bare:
            raise _not_a_number(what, literal.decode())


def _not_a_number(what: str, shown: object) -> InvalidPayload:
    name = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(shown), shown)
    return InvalidPayload(f"{what} holds {name} (NaN and infinities are not JSON): pass null or a finite number")


def _check_depth(bare: bytes, what: str) -> None:
    brackets = bare.translate(_TO_SQUARE, _NOT_BRACKETS)
    for _level in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")  # removes the innermost level
        if not brackets:
            return
    raise InvalidPayload(f"{what} is nested deeper than {MAX_DEPTH} levels: flatten it, or pass it as text")


def _without_strings(text: bytes) -> bytes:
    return _STRING.sub(b"", text)


def _shortened(text: str, limit: int) -> str:
    # With the longest possible number, so that the result never exceeds the limit.
    room = limit - len(_left_out(len(text)))
    if room <= 0:
        return text[:limit]
    head, tail = room - room // 2, room // 2
    return text[:head] + _left_out(len(text) - room) + (text[-tail:] if tail else "")


def _left_out(count: int) -> str:
    return f" … {count} characters left out … "
