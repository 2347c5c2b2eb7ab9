"""The attempts as a chart: when the job waited, when it ran."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tenure.client.report.markup import Markup, tag
from tenure.client.report.words import label, offset, plain, span

if TYPE_CHECKING:
    from tenure.client.report.life import Attempt, Report

LANES = 40  # more are too narrow to see

_TONES = {
    "completed": "good",
    "running": "busy",
    "failed": "bad",
    "timed_out": "bad",
    "crashed": "bad",
    "lease_lost": "bad",
    "dead_letter": "bad",
    "retry": "odd",
    "snoozed": "odd",
    "requeued": "odd",
    "canceled": "odd",
    "retried": "odd",
    "replayed": "odd",
}


def tone(what: str) -> str:
    """The color of a state, an outcome or a moment. Always one of our own names: it is written into a class attribute."""
    return _TONES.get(what, "calm")


@dataclass(frozen=True, slots=True)
class Scale:
    first: datetime
    last: datetime

    def percent(self, at: datetime) -> float:
        whole = self.last - self.first
        return min(max((at - self.first) / whole, 0.0), 1.0) * 100 if whole else 0.0

    def bar(self, start: datetime, end: datetime, kind: str, title: str) -> Markup:
        left, right = self.percent(start), self.percent(end)
        return tag("i", class_=f"bar {kind}", style=f"left:{left:.3f}%;width:{right - left:.3f}%", title=title)


def chart(report: Report) -> Markup:
    """Empty if the job has not run."""
    drawn = [attempt for attempt in report.attempts if attempt.started_at is not None][-LANES:]
    if not drawn:
        return Markup()
    scale = _scale(report, drawn)
    ends = [tag("span", offset(report.job.enqueued_at, at)) for at in (scale.first, scale.last)]
    lanes = [_lane(attempt, scale, report.at) for attempt in drawn]
    return tag("div", *lanes, tag("div", *ends, class_="ends"), class_="chart")


def _scale(report: Report, drawn: list[Attempt]) -> Scale:
    """From the enqueue, or from the first attempt that is drawn; to the end of the last."""
    whole = len(drawn) == len(report.attempts)
    starts = [attempt.started_at - (attempt.waited or timedelta()) for attempt in drawn if attempt.started_at]
    ends = [_end(attempt, report.at) for attempt in drawn]
    return Scale(report.job.enqueued_at if whole else min(starts), max([*ends, *starts]))


def _end(attempt: Attempt, now: datetime) -> datetime:
    assert attempt.started_at is not None
    return attempt.ended_at or (now if attempt.outcome == "running" else attempt.started_at)


def _lane(attempt: Attempt, scale: Scale, now: datetime) -> Markup:
    assert attempt.started_at is not None
    bars = []
    if attempt.waited:
        bars.append(scale.bar(attempt.started_at - attempt.waited, attempt.started_at, "wait", f"waited {span(attempt.waited)}"))
    ran = f", ran {span(attempt.ran)}" if attempt.ran is not None else ""
    title = f"{plain(attempt.outcome)}{ran}"
    bars.append(scale.bar(attempt.started_at, _end(attempt, now), tone(attempt.outcome), title))
    return tag("div", tag("span", label(attempt), class_="name"), tag("div", *bars, class_="track"), class_="lane")
