"""The live display: complete at 80 and at 120 columns, and without control characters in a pipe."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from rich.console import Console

from tenure.cli import live_display
from tenure.cli.display_counts import outcomes, rows, tally
from tenure.cli.live_display import CountRow, DisplayState, LiveDisplay, PlainDisplay, ShownProgress, bar, draw
from tenure.client.overview import FinishedCount, LiveCount, Stats
from tenure.client.rate_meter import RateMeter
from tenure.model.states import State

NOW = datetime(2025, 1, 1, tzinfo=UTC)
STATE = DisplayState(
    heading="queue",
    counts=[CountRow("mail", 1234, 12, 340), CountRow("payments", 0, 0, 0)],
    progress=[ShownProgress("encode_video 7", 63.0, "630 of 1000 frames")],
    progress_rows=2,
    facts=[[("jobs/s", "41"), ("retries", "3")]],
    notes=["  dead letter: " + "far too long " * 30],
)


def drawn(state: DisplayState, columns: int, **more: bool) -> list[str]:
    console = Console(width=columns, force_terminal=False, color_system=None)
    with console.capture() as said:
        console.print(draw(state, columns, **more))
    return said.get().splitlines()


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_everything_fits_its_width_and_is_aligned(columns):
    lines = drawn(STATE, columns)
    assert max(len(line) for line in lines) <= columns
    mail, payments = (next(line for line in lines if name in line) for name in ("mail", "payments"))
    assert mail.split()[-3:] == ["1,234", "12", "340"]
    assert payments.split()[-3:] == ["-", "-", "-"]
    assert len(mail) == len(payments)
    assert any("encode_video 7" in line and "63 %" in line for line in lines)
    assert any("jobs/s 41" in line and "retries 3" in line for line in lines)


def test_its_height_does_not_depend_on_how_many_jobs_report_progress():
    without = DisplayState(heading=STATE.heading, counts=STATE.counts, progress_rows=2, facts=STATE.facts, notes=STATE.notes)
    assert len(drawn(STATE, 80)) == len(drawn(without, 80))


@pytest.mark.parametrize("parts", [(1, 1, 1), (997, 2, 1), (0, 0, 5), (5, 0, 0), (1, 0, 0)])
def test_a_bar_is_as_long_as_it_should_be(parts):
    drawn = bar(dict(zip(("done", "running", "waiting"), parts, strict=True)), 37)
    assert len(drawn.plain) == 37


def test_a_bar_of_nothing_is_empty_and_one_without_unicode_is_plain():
    assert bar({"done": 0, "running": 0, "waiting": 0}, 10).plain == ""
    assert bar({"done": 5, "running": 3, "waiting": 2}, 10, plain=True).plain == "#####>>>--"


def test_without_a_terminal_there_are_plain_lines_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(live_display, "LINE_EVERY", 0.0)
    with PlainDisplay() as plain:
        plain.event("[red]kill -9[/] of it")
        plain.update(STATE)
        plain.update(DisplayState(heading="queue", counts=[CountRow("mail", 0, 0, 0)]))
        plain.print_lines(["", "  [bold]7[/]  jobs  "])
        plain.stop()
    said = capsys.readouterr().out
    assert re.sub(r"\d+\.\d s", "0.0 s", said) == "  0.0 s  kill -9 of it\n  0.0 s  done: mail 1234 of 1586\n\n  7  jobs\n"


def test_on_a_terminal_events_are_above_the_bars(capsys):
    with LiveDisplay(Console(width=80, force_terminal=True, highlight=False)) as live:
        live.update(STATE)
        live.event("[red]kill -9[/] of it")
        live.update(STATE)
    said = capsys.readouterr().out
    assert said.index("kill -9") < said.rindex("mail")
    assert said.rstrip().endswith("\x1b[?25h")  # the cursor is visible again


def test_counts_become_rows():
    live = [
        LiveCount("mail", "a", State.PENDING, 3, NOW),
        LiveCount("mail", "a", State.RETRY, 1, NOW),
        LiveCount("mail", "b", State.RUNNING, 2, NOW),
        LiveCount("mail", "b", State.DEAD_LETTER, 1, NOW),
        LiveCount("other", "x", State.PENDING, 9, NOW),
    ]
    finished = [
        FinishedCount("mail", "a", "completed", 5, 0, 0),
        FinishedCount("mail", "a", "retry", 4, 0, 0),
        FinishedCount("mail", "a", "dead_letter", 7, 0, 0),  # attempts; the jobs may have been replayed since
    ]
    stats = Stats(live, finished)

    def ours(queue: str, _kind: str) -> str | None:
        return queue if queue == "mail" else None

    assert rows(tally(stats, ours), ["mail", "none"]) == [CountRow("mail", 6, 2, 4), CountRow("none", 0, 0, 0)]
    assert dict(outcomes(stats, ours)) == {"completed": 5, "retry": 4, "dead_letter": 1}


def test_a_rate_is_measured_over_the_last_two_seconds(monkeypatch):
    clock = iter([0.0, 1.0, 2.0, 4.0])
    monkeypatch.setattr("tenure.client.rate_meter.time.monotonic", lambda: next(clock))
    meter = RateMeter()
    assert [meter.update(count) for count in (0, 10, 40, 100)] == [0.0, 10.0, 20.0, 30.0]
