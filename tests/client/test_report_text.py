"""A report in a terminal."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from tenure.client.report.life import ReportedChild
from tenure.client.report.words import gist, offset, span
from tenure.client.status import Progress
from tenure.model.states import State
from tests.client.lives import TRACEBACK, WORKER, at, ended, line, report, status, twice_failed

OTHER = TRACEBACK.replace("ValueError: no such address", "KeyError: 'other'")
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "a.py", line 1, in f
  |     raise ExceptionGroup("both", found)
  | ExceptionGroup: both (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | ValueError: one
    +------------------------------------
"""
EVIL = "\x1b[31mred\x1b[0m \x07 \u202egnp.exe\u2066 \u2028 \x9b31m \r overwritten"


def section(text: str, name: str) -> str:
    return next(part for part in text.split("\n\n") if part.startswith(name))


def test_a_whole_life():
    assert twice_failed().to_text() == (
        "send_email  00000000-0000-0000-0000-000000000001  completed\n"
        "\n"
        "  queue       mail, priority 50\n"
        "  attempts    3 of 3\n"
        "  time        waited 2.15 s, ran 3.85 s, lived 12.0 s\n"
        "  enqueued    2026-07-27 10:00:00.000 UTC\n"
        "  finished    2026-07-27 10:00:12.000 UTC\n"
        '  input       {"to": "ada"}\n'
        '  output      {"ok": true}\n'
        "\n"
        "timeline\n"
        "  +0 s     enqueued by shop\n"
        "  +0.15 s  attempt 1 started on here:1, waited 0.15 s\n"
        "  +1.00 s  attempt 1 failed after 0.85 s: ValueError: no such address; due again in 2.00 s\n"
        "  +4.00 s  attempt 2 started on here:1, waited 1.00 s\n"
        "  +5.00 s  attempt 2 timed out after 1.00 s: TimeoutError: timed out; due again in 4.00 s\n"
        "  +10.0 s  attempt 3 started on here:1, waited 1.00 s\n"
        "  +12.0 s  attempt 3 completed after 2.00 s\n"
        "\n"
        "attempts\n"
        "  attempt 1  failed  waited 0.15 s  ran 0.85 s  on here:1\n"
        "      ... 2 lines above\n"
        "          outcome = handler(*args)\n"
        '        File "/app/jobs.py", line 3, in send\n'
        "          inner(message)\n"
        '        File "/app/mail.py", line 7, in inner\n'
        '          raise ValueError("no such address")\n'
        "      ValueError: no such address\n"
        "  attempt 2  timed out  waited 1.00 s  ran 1.00 s  on here:1\n"
        "      TimeoutError: timed out\n"
        "  attempt 3  completed  waited 1.00 s  ran 2.00 s  on here:1\n"
    )


def test_in_full_nothing_is_left_out():
    text = twice_failed().to_text(full=True)
    assert "lines above" not in text
    assert all(part.strip() in text for part in TRACEBACK.splitlines())


def test_progress_log_and_children():
    told = report(
        status("running", fence=1, worker_id=WORKER, started_at=at(1)),
        progress=Progress(50, "half of it", at(4)),
        log=[line("began"), line("odd", level="warning", second=61, rows=3, name="ada")],
        children=[ReportedChild(id=UUID(int=5), kind="thumbnail", state=State.PENDING, queue="default")],
        more_children=True,
    ).to_text()
    assert "  progress    [###############---------------]  50 %  half of it  (at +4.00 s)\n" in told
    assert section(told, "log") == (
        "log (last 2 lines)\n  +1.00 s     info     began\n  +1 min 1 s  warning  odd  rows=3 name=ada"
    )
    assert section(told, "children") == (f"children (1 shown, more exist)\n  {UUID(int=5)}  pending      thumbnail\n")


@pytest.mark.parametrize(("percent", "marks"), [(-5, 0), (0, 0), (33.4, 10), (100, 30), (1e9, 30)])
def test_the_bar_stays_within_its_bounds(percent, marks):
    text = report(status(), progress=Progress(percent, None, at(1))).to_text()
    assert f"[{'#' * marks}{'-' * (30 - marks)}]" in text


def test_what_is_not_kept_is_said():
    text = report(status("dead_letter", attempt=3, fence=3, started_at=at(5), error=TRACEBACK)).to_text()
    assert "(nothing is stored about 2 runs)" in text
    assert section(text, "error").endswith("ValueError: no such address\n")


def test_a_job_that_never_ran_has_no_empty_headings():
    text = report(status()).to_text()
    assert [part.split("\n")[0] for part in text.split("\n\n")[2:]] == ["timeline"]


def test_nothing_in_it_acts_on_the_terminal():
    job = status("dead_letter", kind=EVIL, fence=1, started_at=at(1), enqueued_by=EVIL, key=EVIL, queue=EVIL, capability=EVIL)
    told = report(
        replace(job, input={"a": EVIL}, output=EVIL, meta=EVIL),
        ended(1, 1, 2, EVIL, error=f"{EVIL}\n{EVIL}", worker=EVIL, by=EVIL),
        progress=Progress(1, EVIL, at(1)),
        log=[line(EVIL, level=EVIL, **{EVIL: EVIL})],
        children=[ReportedChild(id=UUID(int=5), kind=EVIL, state=State.PENDING, queue=EVIL)],
    )
    for full in (False, True):
        text = told.to_text(full=full)
        assert {character for character in text if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")} == {"\n"}
        assert "\\x1b[31mred" in text
        assert "\\u202egnp.exe" in text


def test_other_people_s_lines_cannot_pass_for_ours():
    text = report(status(enqueued_by="shop\n  +9 s  attempt 1 completed"), log=[line("a\nb\tc")]).to_text()
    assert "enqueued by shop\\n  +9 s" in text
    assert "a\\nb\\tc" in text


def test_long_lines_are_cut_and_say_so_unless_in_full():
    told = report(status("retry", fence=1, run_at=at(9)), ended(1, 1, 2, error="x" * 100_000), log=[line("y" * 5000)] * 200)
    assert max(map(len, told.to_text().split("\n"))) < 400
    assert "… 4700 more characters" in told.to_text()
    assert "x" * 100_000 in told.to_text(full=True)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.0004, "0.4 ms"),
        (0.0042, "4.2 ms"),
        (0.042, "42 ms"),
        (0.15, "0.15 s"),
        (9.99, "9.99 s"),
        (12.34, "12.3 s"),
        (59.97, "1 min"),
        (245, "4 min 5 s"),
        (3599.7, "1 h"),
        (7500, "2 h 5 min"),
        (86400 * 3 + 3600 * 4, "3 d 4 h"),
        (-2, "-2.00 s"),
    ],
)
def test_spans_are_as_exact_as_a_person_wants_them(seconds, words):
    assert span(timedelta(seconds=seconds)) == words


def test_what_was_before_the_enqueue_has_a_minus():
    assert offset(at(1), at(0.5)) == "-0.50 s"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (TRACEBACK, "ValueError: no such address"),
        ("boom", "boom"),
        ("two\nlines", "two"),
        ("", ""),
        ("\n \n", ""),
        ("Traceback (most recent call last):\n  File", "Traceback (most recent call last):"),
        (TRACEBACK + "and another line\nof its message\n", "ValueError: no such address"),
        (GROUP, "ExceptionGroup: both (2 sub-exceptions)"),
        (TRACEBACK.replace(": no such", ": 1 fault\nfield\n  is missing; no such"), "ValueError: 1 fault"),
        (f"{TRACEBACK}\nDuring handling of the above exception, another exception occurred:\n\n{OTHER}", "KeyError: 'other'"),
        ("x" * 300, "x" * 200 + " … 100 more characters"),
    ],
)
def test_the_gist_of_an_error(error, line):
    assert gist(error) == line
