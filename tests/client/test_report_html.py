"""A report in a browser."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser
from uuid import UUID

import pytest

from tenure.client.report.life import ReportedChild
from tenure.client.report.markup import Markup, join, tag
from tenure.client.status import Progress
from tenure.model.states import State
from tests.client.lives import TRACEBACK, WORKER, at, ended, line, report, status, twice_failed

VOID = {"meta"}
KNOWN = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "section", "footer", "div", "p", "span", "b", "i"),
    *("h1", "h2", "dl", "dt", "dd", "ol", "li", "time", "table", "tr", "th", "td", "code", "pre", "details", "summary"),
}
EVIL = "</pre></style></title></script><script>alert(1)</script><img src=x onerror=alert(1)> \" onload='x' &lt; \u202egnp \x1b[1m"


class Page(HTMLParser):
    """Reads a page as a browser would: which elements, which attributes, which words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.classes: set[str] = set()
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.classes.update(word for name, given in attrs if name == "class" for word in given.split())
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words += data


def hostile():
    job = status("dead_letter", kind=EVIL, fence=1, started_at=at(1), enqueued_by=EVIL, key=EVIL, queue=EVIL, capability=EVIL)
    return report(
        replace(job, input={EVIL: EVIL * 9}, output=EVIL, meta=EVIL),
        ended(1, 1, 2, EVIL, error=f"{EVIL}\n{EVIL}", worker=EVIL, by=EVIL),
        progress=Progress(1, EVIL, at(1)),
        log=[line(EVIL, level=EVIL, **{EVIL: EVIL})],
        children=[ReportedChild(id=UUID(int=5), kind=EVIL, state=State.PENDING, queue=EVIL)],
    )


def test_a_whole_life():
    page = Page(twice_failed().to_html())
    for words in (
        "send_email",
        "completed",
        "attempt 1 failed after 0.85 s",
        "ValueError: no such address",
        '{"ok": true}',
        "+12.0 s",
    ):
        assert words in page.words
    assert page.tags <= KNOWN


def test_the_caller_is_not_shown_in_the_report():
    told = twice_failed()
    assert "secret-user" not in told.to_html() + told.to_text()


def test_it_loads_nothing_and_runs_nothing():
    text = twice_failed().to_html()
    page = Page(text)
    assert not page.tags & {"script", "link", "img", "iframe", "object", "base", "form"}
    assert not re.search(r"https?:|//|url\(|@import", text)
    assert "default-src 'none'" in text


def test_hostile_text_stays_text():
    text = hostile().to_html()
    page = Page(text)
    assert page.tags <= KNOWN
    assert page.attributes <= {"lang", "charset", "name", "content", "http-equiv", "class", "style", "title", "datetime"}
    assert page.classes <= set(re.findall(r"[a-z_]+", text[text.index("<style>") : text.index("</style>")])) | {"level"}
    assert "<script" not in text
    assert "<script>alert(1)</script>" in page.words
    shown = {character for character in text if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")}
    assert shown == {"\n"}


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_a_page(state):
    Page(
        report(
            status(state, fence=1, started_at=at(1), worker_id=WORKER, finished_at=at(2) if state.finished else None)
        ).to_html()
    )


def test_huge_errors_and_long_logs_make_a_page_of_bearable_size():
    runs = [ended(n, n, n + 0.5, error=f"{n}\n" + "x" * 1_000_000) for n in range(1, 6)]
    told = report(status("retry", fence=5, run_at=at(9)), *runs, log=[line("y" * 100_000)] * 200)
    text = told.to_html()
    assert len(text) < 1_000_000
    assert "characters left out" in text
    assert "more characters" in text
    Page(text)


def test_hundreds_of_attempts_are_drawn_as_far_as_they_can_be_distinguished():
    told = report(status("retry", fence=200, run_at=at(999)), *[ended(n, n, n + 0.5) for n in range(1, 201)])
    text = told.to_html()
    assert text.count('class="lane"') == 40
    assert text.count('class="attempt"') == 200


def test_bars_lie_within_the_chart():
    bars = re.findall(r"left:([0-9.]+)%;width:([0-9.]+)%", twice_failed().to_html())
    assert len(bars) == 6  # a wait and a run for each of three attempts
    assert all(0 <= float(left) <= float(left) + float(width) <= 100.01 for left, width in bars)
    assert bars[-1] == ("83.333", "16.667")


def test_a_life_without_length_can_be_drawn():
    Page(report(status("completed", fence=1, worker_id=WORKER, started_at=at(0), finished_at=at(0)), now=0).to_html())


def test_what_is_not_there_has_no_heading():
    text = report(status()).to_html()
    assert re.findall(r"<h2>(.*?)</h2>", text) == ["Timeline", "Details"]


def test_an_error_that_belongs_to_no_kept_attempt_is_shown():
    text = report(status("dead_letter", attempt=3, fence=3, started_at=at(5), error=TRACEBACK)).to_html()
    assert "<h2>Error</h2>" in text
    assert "Nothing is stored about 2 runs." in text


def test_markup_escapes_everything_that_is_not_markup():
    assert tag("p", "<b>", Markup("<i></i>"), title='"<', class_="a") == '<p title="&quot;&lt;" class="a">&lt;b&gt;<i></i></p>'
    assert join("a<", tag("b", "c")) == "a&lt;<b>c</b>"
