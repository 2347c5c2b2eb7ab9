"""Values that cannot be stored or printed, and actions that try it anyway. Used by the handlers of `handlers.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tenure import Cancel, Context, Fail, Snooze

GARBLED = "a\x00b\ud800c"
CLEAN = "a\ufffdb\ufffdc"
WIDE = 3_000_000
"""Characters: six bytes each when escaped, so more than any line between processes may hold."""


class Wordless:
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Careless(Fail):
    def __init__(self) -> None:
        """Without its parent's."""


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def endless() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


NOT_KEPT: dict[str, Callable[[], Any]] = {
    "NUL": lambda: "a\x00b",
    "NUL in a name": lambda: {"a\x00b": 1},
    "lone surrogate": lambda: "a\ud800b",
    "lone surrogate in a name": lambda: {"\udfff": 1},
    "NaN": lambda: math.nan,
    "Infinity": lambda: [1.0, math.inf],
    "minus Infinity": lambda: {"a": {"b": -math.inf}},
    "more than a MiB": lambda: "x" * (1 << 20),
    "200 levels": lambda: nested(200),
    "100 000 levels": lambda: nested(100_000),
    "no end": endless,
    "more digits than Python reads": lambda: 10**5000,
    "more digits than PostgreSQL keeps": lambda: 10**140_000,
    "bytes that are not text": lambda: b"\xff\xfe",
    "no JSON at all": lambda: [object()],
    "no words": Wordless,
}


def _raise(error: BaseException) -> Any:
    raise error


def _circle() -> BaseException:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def _noted() -> BaseException:
    error = ValueError(f"noted {GARBLED}")
    error.add_note(GARBLED)
    return error


def _log(ctx: Context, message: Any, **fields: Any) -> None:
    ctx.log.info("before")
    ctx.log.info(message, **fields)
    ctx.progress(100, "logged")


DEEDS: dict[str, Callable[[Context], Any]] = {
    "return nothing": lambda _: None,
    "log garbled": lambda ctx: _log(ctx, GARBLED, **{f"name {GARBLED}": f"value {GARBLED}"}),
    "log odd numbers": lambda ctx: _log(ctx, "odd", nan=math.nan, inf=math.inf, size=10**30),
    "log a number too long for Python": lambda ctx: _log(ctx, "odd", size=10**5000),
    "log odd values": lambda ctx: _log(ctx, "odd", wordless=Wordless(), nothing=None, path=b"\xff", deep={"a": [Wordless()]}),
    "log a wordless message": lambda ctx: _log(ctx, Wordless()),
    "log long": lambda ctx: _log(ctx, "ä" * WIDE, wide="ä" * WIDE),
    "long progress": lambda ctx: ctx.progress(50, "ä" * WIDE),
    "garbled progress": lambda ctx: ctx.progress(50, GARBLED),
    "raise garbled": lambda _: _raise(ValueError(GARBLED)),
    "raise long": lambda _: _raise(ValueError("ä" * WIDE)),
    "raise circle": lambda _: _raise(_circle()),
    "raise noted": lambda _: _raise(_noted()),
    "raise wordless": lambda _: _raise(ValueError(Wordless())),
    "raise group": lambda _: _raise(ExceptionGroup("several", [ValueError("one"), KeyError("two")])),
    "raise blank": lambda _: _raise(ValueError(" \n ")),
    "fail garbled": lambda _: Fail(GARBLED),
    "fail long": lambda _: Fail("ä" * WIDE),
    "fail by one word": lambda _: Fail("declined"),
    "fail with a colon": lambda _: Fail("declined: card expired"),
    "fail blank": lambda _: Fail(" \n"),
    "fail with an exception": lambda _: _raise(Fail(ValueError("as the reason"))),  # type: ignore[arg-type]
    "fail by a careless subclass": lambda _: _raise(Careless()),
    "cancel garbled": lambda _: Cancel(GARBLED),
    "cancel blank": lambda _: Cancel(" "),
    "snooze for ever": lambda _: Snooze(timedelta(days=999_999_998)),
    **{f"return {name}": lambda _, make=make: make() for name, make in NOT_KEPT.items()},
}
