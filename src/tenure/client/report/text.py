"""A report for a terminal: plain text without control sequences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenure.client.report.facts import facts, lost_error, payloads
from tenure.client.report.words import clean, inline, label, offset, plain, short, span, value, worker_of

if TYPE_CHECKING:
    from tenure.client.report.life import Attempt, Report, ReportedLogLine

ERROR_LINES = 6  # the last frame, its line of code, and what was raised
LINE = 300  # characters of a line
BAR = 30  # characters of a progress bar


def to_text(report: Report, *, full: bool = False) -> str:
    limit = None if full else LINE
    sections = [
        _head(report),
        list(_facts(report, limit)),
        ["timeline", *_timeline(report)],
        list(_attempts(report, limit)),
        list(_error(report, limit)),
        list(_log(report, limit)),
        list(_children(report)),
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _head(report: Report) -> list[str]:
    return [f"{inline(report.job.kind, LINE)}  {report.job.id}  {plain(report.job.state)}"]


def _facts(report: Report, limit: int | None) -> Iterator[str]:
    for name, text in [*facts(report), *payloads(report)]:
        yield f"  {name:<10}  {inline(text, limit)}"
    if report.progress is not None:
        yield f"  {'progress':<10}  {_bar(report.progress.percent)}  {_progress(report)}"


def _progress(report: Report) -> str:
    assert report.progress is not None
    text = f"{report.progress.percent:g} %"
    if report.progress.message:
        text += f"  {inline(report.progress.message, LINE)}"
    return f"{text}  (at {offset(report.job.enqueued_at, report.progress.updated_at)})"


def _bar(percent: float) -> str:
    done = round(min(max(percent, 0), 100) / 100 * BAR)
    return f"[{'#' * done}{'-' * (BAR - done)}]"


def _timeline(report: Report) -> Iterator[str]:
    rows = [(offset(report.job.enqueued_at, moment.at), moment.text) for moment in report.events]
    width = max((len(at) for at, _ in rows), default=0)
    for at, text in rows:
        yield f"  {at:<{width}}  {text}"


def _attempts(report: Report, limit: int | None) -> Iterator[str]:
    if not report.attempts and not report.untold:
        return
    yield "attempts"
    if report.untold:
        yield f"  (nothing is stored about {report.untold} {'run' if report.untold == 1 else 'runs'})"
    for attempt in report.attempts:
        yield "  " + "  ".join(_attempt(attempt))
        if attempt.error:
            yield from _error_lines(attempt.error, limit)


def _attempt(attempt: Attempt) -> Iterator[str]:
    yield label(attempt)
    yield plain(attempt.outcome)
    if attempt.waited is not None:
        yield f"waited {span(attempt.waited)}"
    if attempt.ran is not None:
        yield f"ran {span(attempt.ran)}"
    if text := worker_of(attempt):
        yield f"on {text}"


def _error_lines(error: str, limit: int | None) -> Iterator[str]:
    """Indented. With a limit only the last lines, which name the exception."""
    lines = clean(error).rstrip().split("\n")
    shown = lines if limit is None else lines[-ERROR_LINES:]
    if len(shown) < len(lines):
        yield f"      ... {len(lines) - len(shown)} lines above"
    for line in shown:
        yield f"      {short(line, limit)}"


def _error(report: Report, limit: int | None) -> Iterator[str]:
    if error := lost_error(report):
        yield "error"
        yield from _error_lines(error, limit)


def _log(report: Report, limit: int | None) -> Iterator[str]:
    if not report.log:
        return
    yield f"log (last {len(report.log)} {'line' if len(report.log) == 1 else 'lines'})"
    start = report.job.enqueued_at
    rows = [(offset(start, line.at) if line.at else "", inline(line.level, 10), _message(line, limit)) for line in report.log]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for at, level, text in rows:
        yield f"  {at:<{widths[0]}}  {level:<{widths[1]}}  {text}"


def _message(line: ReportedLogLine, limit: int | None) -> str:
    extra = " ".join(f"{name}={value(given)}" for name, given in line.fields.items())
    return inline(f"{line.message}  {extra}" if extra else line.message, limit)


def _children(report: Report) -> Iterator[str]:
    if not report.children:
        return
    more = ", more exist" if report.more_children else ""
    yield f"children ({len(report.children)} shown{more})"
    for child in report.children:
        yield f"  {child.id}  {plain(child.state):<11}  {inline(child.kind, LINE)}"
