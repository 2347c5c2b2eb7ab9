"""Formatting for reports: durations, times, errors, and untrusted text made safe to display."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from tenure.model.failures import Failure

if TYPE_CHECKING:
    from tenure.client.report.life import Attempt

GIST = 200  # characters of an error in a timeline

# Characters that move the cursor, change the direction of writing or are invisible: shown by their code instead.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_FRAME = re.compile(r'  File "')
_GROUP = re.compile(r"\s*\+ Exception Group Traceback")
_RAISED_IN_GROUP = re.compile(r"\s*\| (?=\S)")


def clean(text: str) -> str:
    """Untrusted text without characters that act on a terminal or a page. Line breaks are kept."""
    return _UNSEEN.sub(_code, text.replace("\r\n", "\n"))


def inline(text: str, limit: int | None = None) -> str:
    """The same on a single line."""
    return clean(short(text, limit)).replace("\n", "\\n").replace("\t", "\\t")


def short(text: str, limit: int | None) -> str:
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]} … {len(text) - limit} more characters"


def value(given: Any) -> str:
    """A JSON value as text."""
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def gist(error: str) -> str:
    """The line that describes the error: the first one of a failure, else the one after the last frame of a traceback, else the
    first one."""
    if (failure := Failure.parse(error)) is not None:
        return inline(str(failure).split("\n")[0].strip(), GIST)
    lines = [line for line in clean(error).split("\n") if line.strip()]
    if not lines:
        return ""
    if _GROUP.match(lines[0]):
        raised = (line.lstrip(" |") for line in lines if _RAISED_IN_GROUP.match(line))
    else:
        frame = max((number for number, line in enumerate(lines) if _FRAME.match(line)), default=len(lines))
        raised = (line for line in lines[frame + 1 :] if not line[0].isspace())
    return inline(next(raised, lines[0]).strip(), GIST)


def span(length: timedelta) -> str:
    """Rounded for people: 4.2 ms, 0.15 s, 12.3 s, 4 min 5 s, 2 h 5 min, 3 d 4 h."""
    seconds = length.total_seconds()
    if seconds < 0:
        return "-" + span(-length)
    if seconds < 59.95:  # rounds up to a minute
        return _under_a_minute(seconds)
    minutes = round(seconds) // 60
    if minutes < 60:
        return _two(minutes, "min", round(seconds) % 60, "s")
    hours = minutes // 60
    return _two(hours, "h", minutes % 60, "min") if hours < 24 else _two(hours // 24, "d", hours % 24, "h")


def offset(start: datetime, at: datetime) -> str:
    """The offset on the timeline: `+0.15 s`."""
    return f"+{span(at - start)}" if at >= start else span(at - start)


def clock(at: datetime, timespec: Literal["seconds", "milliseconds"] = "milliseconds") -> str:
    """`2026-01-31 18:30:00.000 UTC`. In UTC, because readers may be in different time zones."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(" ", timespec) + " UTC"


def plain(word: str) -> str:
    """`timed_out` with a space instead of the underscore."""
    return inline(word.replace("_", " "), 60)


def label(attempt: Attempt) -> str:
    """Which attempt it was, and which run if that number differs."""
    if attempt.number is None:
        return f"run {attempt.fence}"
    return f"attempt {attempt.number}" + (f" (run {attempt.fence})" if attempt.number != attempt.fence else "")


def worker_of(attempt: Attempt) -> str | None:
    """The name of the worker that ran it, or the end of its id."""
    if attempt.worker is not None:
        return inline(attempt.worker, 100)
    return None if attempt.worker_id is None else f"worker {str(attempt.worker_id)[-8:]}"


def _under_a_minute(seconds: float) -> str:
    if not seconds:
        return "0 s"
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit}" + (f" {small} {small_unit}" if small else "")


def _code(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
