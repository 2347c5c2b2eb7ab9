"""The charts of `python -m benchmarks.flat`, and a small run that makes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from benchmarks.flat.__main__ import Report, quarters
from benchmarks.flat.chart import Chart, Line, short
from benchmarks.flat.long_load import Sample

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def circles(chart: Chart) -> list[tuple[float, float]]:
    return [(float(dot.get("cx", "")), float(dot.get("cy", ""))) for dot in ET.fromstring(chart.svg()).iter(f"{SVG}circle")]


def test_equal_values_are_drawn_at_one_height_and_larger_ones_above():
    first, second, third = circles(Chart("t", "rows", "jobs/s", [Line("drain", [(0, 100), (5, 100), (10, 180)])]))
    assert first[1] == second[1] > third[1]
    assert first[0] < second[0] < third[0]
    assert second[0] - first[0] == pytest.approx(third[0] - second[0], abs=0.2)


def test_text_is_escaped():
    texts = [text.text for text in ET.fromstring(Chart("a < b", "x", "y & z", [Line("l", [(0, 1)])]).svg()).iter(f"{SVG}text")]
    assert "a < b" in texts
    assert "y & z" in texts


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (250, "250"), (25_000, "25 k"), (2_500_000, "2.5 M")])
def test_numbers_are_short(number, text):
    assert short(number) == text


@pytest.mark.parametrize(("count", "first", "last"), [(1, [0], [0]), (5, [0], [4]), (12, [0, 1, 2], [9, 10, 11])])
def test_the_first_and_the_last_quarter_of_a_load(count, first, last):
    samples = [Sample(minutes, 0, 0, 0, 0, 0) for minutes in range(count)]
    assert [[sample.minutes for sample in part] for part in quarters(samples)] == [first, last]


def test_growth_under_load_is_in_the_table(tmp_path):
    report = Report(tmp_path)
    report.load(100, [Sample(n, 100, 2, 4 + n, (n + 1) << 20, 1 << 20) for n in range(4)])
    assert [row[1:] for row in report.load_rows] == [
        ("2.0 ms", "2.0 ms", "1.00"),
        ("4.0 ms", "7.0 ms", "1.75"),
        ("1.0 MB", "4.0 MB", "4.00"),
        ("1.0 MB", "1.0 MB", "1.00"),
    ]


@pytest.mark.slow
def test_a_small_run_writes_its_charts_and_its_table(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- flat: begin, written by a script -->\n<!-- flat: end -->\nafter\n")
    options = ["--share", "0.002", "--jobs", "500", "--rounds", "1", "--seconds", "12"]
    command = [sys.executable, "-m", "benchmarks.flat", *options, "--images", str(tmp_path), "--publish", str(page)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=240)
    charts = sorted(path.name for path in tmp_path.glob("flat-*.svg"))
    stocks = ["finished", "keys", "queues", "scheduled", "snapshot", "unknown"]
    assert charts == sorted(f"flat-{name}.svg" for name in (*stocks, "load-rate", "load-size", "load-wait"))
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert text.count("| Drain be") == len(stocks)
    assert text.count(": enqueue to start, p99 | ") == text.count(": table jobs | ") == 1
