"""A report for a browser: one page, no scripts, no external resources, everything escaped."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from tenure.client.report.chart import chart, tone
from tenure.client.report.facts import facts, lost_error, payloads
from tenure.client.report.markup import Markup, join, tag
from tenure.client.report.words import clean, clock, gist, inline, label, offset, plain, short, span, value, worker_of

if TYPE_CHECKING:
    from tenure.client.report.life import Attempt, Moment, Report, ReportedChild, ReportedLogLine

BLOCK = 20_000  # characters of an error, an input, an output
LINE = 2_000  # characters of a log line

# A second defence: even if the code below missed something, the browser would not run it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def to_html(report: Report) -> str:
    title = f"{inline(report.job.kind, 100)} {report.job.id}"
    head = [
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("title", title),
        tag("style", Markup(_style())),
    ]
    page = tag("html", tag("head", *head), tag("body", tag("main", *_sections(report))), lang="en")
    return f"<!doctype html>\n{page}\n"


@cache
def _style() -> str:
    return files(__package__).joinpath("page.css").read_text("utf-8")


def _sections(report: Report) -> list[Markup]:
    return [
        _head(report),
        _totals(report),
        _progress(report),
        _section("Attempts", chart(report), *[_attempt(attempt) for attempt in report.attempts], _untold(report)),
        _section("Error", _lost(report)),
        _section("Timeline", _timeline(report)),
        _section("Details", _facts(report)),
        _section("Log", _log(report)),
        _section(f"Children ({len(report.children)}{'+' if report.more_children else ''})", _children(report)),
        tag("footer", f"As of {clock(report.at)}. All times are UTC."),
    ]


def _section(title: str, *content: Markup) -> Markup:
    """Empty if there is nothing to show."""
    return tag("section", tag("h2", title), *content) if any(content) else Markup()


def _head(report: Report) -> Markup:
    job = report.job
    state = tag("span", plain(job.state), class_=f"state {tone(job.state)}")
    return tag("header", tag("h1", inline(job.kind, 200), " ", state), tag("p", str(job.id), class_="id"))


def _totals(report: Report) -> Markup:
    job, totals = report.job, report.totals
    figures = [
        ("waited", span(totals.waited)),
        ("ran", span(totals.ran)),
        ("lived", span(totals.lived)),
        ("attempts", f"{job.attempt} of {job.max_attempts}"),
    ]
    if job.crashes:
        figures.append(("crashes", str(job.crashes)))
    return tag("dl", *[tag("div", tag("dt", name), tag("dd", number)) for name, number in figures], class_="totals")


def _progress(report: Report) -> Markup:
    if report.progress is None:
        return Markup()
    progress = report.progress
    width = min(max(progress.percent, 0.0), 100.0)
    meter = tag("div", tag("i", style=f"width:{width:.2f}%"), class_="meter")
    words = f"{progress.percent:g} %" + (f" · {inline(progress.message, LINE)}" if progress.message else "")
    when = tag("span", offset(report.job.enqueued_at, progress.updated_at), class_="faint")
    return tag("div", meter, tag("p", words, " ", when), class_="progress")


def _attempt(attempt: Attempt) -> Markup:
    about = [f"waited {span(attempt.waited)}"] if attempt.waited is not None else []
    about += [f"ran {span(attempt.ran)}"] if attempt.ran is not None else []
    about += [f"on {worker}"] if (worker := worker_of(attempt)) else []
    about += [f"by {inline(attempt.by, 100)}"] if attempt.by else []
    head = [
        tag("b", label(attempt)),
        tag("span", plain(attempt.outcome), class_=f"state {tone(attempt.outcome)}"),
        tag("span", " · ".join(about), class_="faint"),
    ]
    return tag("div", tag("p", *head), _error(attempt.error), class_="attempt")


def _error(error: str | None) -> Markup:
    """The exception, with a traceback that can be opened."""
    if not error:
        return Markup()
    whole = clean(error).strip()
    if "\n" not in whole and len(whole) <= LINE:
        return tag("p", whole, class_="gist")
    # The end of a traceback is what matters.
    cut = len(whole) - BLOCK
    shown = whole if cut <= 0 else f"… {cut} characters left out …\n{whole[-BLOCK:]}"
    return tag("details", tag("summary", gist(error), class_="gist"), tag("pre", shown))


def _untold(report: Report) -> Markup:
    if not report.untold:
        return Markup()
    runs = "run" if report.untold == 1 else "runs"
    return tag("p", f"Nothing is stored about {report.untold} {runs}.", class_="faint")


def _lost(report: Report) -> Markup:
    return _error(lost_error(report))


def _timeline(report: Report) -> Markup:
    start = report.job.enqueued_at

    def item(moment: Moment) -> Markup:
        at = tag("time", offset(start, moment.at), datetime=moment.at.isoformat(), title=clock(moment.at))
        return tag("li", at, tag("span", moment.text), class_=tone(moment.what))

    return tag("ol", *[item(moment) for moment in report.events], class_="timeline")


def _facts(report: Report) -> Markup:
    shown = [(name, text) for name, text in facts(report) if name not in ("attempts", "time")]  # shown at the top
    rows = [tag("tr", tag("th", name), tag("td", short(text, LINE))) for name, text in shown]
    rows += [tag("tr", tag("th", name), tag("td", _payload(text))) for name, text in payloads(report)]
    return tag("table", *rows, class_="facts")


def _payload(text: str) -> Markup:
    if len(text) <= 200:
        return tag("code", text)
    return tag("details", tag("summary", tag("code", short(text, 100))), tag("pre", short(text, BLOCK)))


def _log(report: Report) -> Markup:
    if not report.log:
        return Markup()
    start = report.job.enqueued_at

    def row(line: ReportedLogLine) -> Markup:
        at = tag("time", offset(start, line.at), title=clock(line.at)) if line.at else Markup()
        extra = [tag("span", f" {name}={short(value(given), LINE)}", class_="faint") for name, given in line.fields.items()]
        level = tag("td", inline(line.level, 10), class_=f"level {_LEVELS.get(line.level.lower(), 'calm')}")
        return tag("tr", tag("td", at), level, tag("td", short(line.message, LINE), *extra))

    return tag("table", *[row(line) for line in report.log], class_="log")


_LEVELS = {"warning": "odd", "warn": "odd", "error": "bad", "critical": "bad"}


def _children(report: Report) -> Markup:
    if not report.children:
        return Markup()

    def row(child: ReportedChild) -> Markup:
        state = tag("span", plain(child.state), class_=f"state {tone(child.state)}")
        return tag("tr", tag("td", tag("code", str(child.id))), tag("td", inline(child.kind, 200)), tag("td", state))

    more = tag("p", "Not all of them are listed here.", class_="faint") if report.more_children else Markup()
    return join(tag("table", *[row(child) for child in report.children], class_="children"), more)
