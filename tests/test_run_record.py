"""The table of what the tests were run with: one row per Python and PostgreSQL, the newest run of each."""

from __future__ import annotations

import platform

import pytest

from tenure.chaos.summary import publish
from tenure.version import __version__
from tests.run_record import ALL, BLOCK, RunRow, merged, part, row_of, rows_in, table

REPORT = """<?xml version="1.0"?><testsuites><testsuite tests="1230" failures="2" errors="1" skipped="7"/></testsuites>"""


def row(python: str, postgresql: str, day: str = "2026-01-01") -> RunRow:
    return RunRow(python, postgresql, "0.1.0", day, "store, worker", "1,220", "0", "4")


def test_a_report_is_counted():
    found = row_of(REPORT, "17.2", "store")
    assert (found.python, found.postgresql) == (platform.python_version(), "17.2")
    assert (found.tenure, found.tests) == (__version__, "store")
    assert (found.passed, found.failed, found.skipped) == ("1,220", "3", "7")


def test_a_run_replaces_the_one_with_the_same_versions(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n<!-- {BLOCK}: begin, written by a script -->\nNot yet run.\n<!-- {BLOCK}: end -->\nafter\n")
    assert rows_in(page.read_text()) == []
    for new in (row("3.13.1", "17.2"), row("3.11.7", "18.4"), row("3.13.4", "17.9", "2026-02-02"), row("3.13.4", "9.6")):
        publish(page, BLOCK, table(merged(rows_in(page.read_text()), new)))
    assert rows_in(page.read_text()) == [row("3.11.7", "18.4"), row("3.13.4", "9.6"), row("3.13.4", "17.9", "2026-02-02")]
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")


def test_a_run_of_some_tests_is_recorded_as_such():
    assert part([]) == part(["-m", "slow"]) == ALL
    assert part(["-m", "not slow", "tests/worker/", "tests/chains"]) == "chains, worker"


@pytest.mark.parametrize("version", ["17beta1", "18.4"])
def test_versions_that_are_not_final_are_understood(version):
    assert len(merged([row("3.11.7", "16.1")], row("3.11.7", version))) == 2
