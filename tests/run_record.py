"""Runs the tests, and records with which Python and PostgreSQL: `python -m tests.run_record --publish PAGE`.

The PostgreSQL is that of `TENURE_TEST_DSN`, or the embedded one. What follows `--` goes to pytest. A row for the same versions is
replaced.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import psycopg

from tenure.chaos.summary import publish
from tenure.embedded import find_binaries
from tenure.version import __version__

BLOCK = "runs"
HEAD = "| Python | PostgreSQL | Tenure | day | tests | passed | failed | skipped |\n|---|---|---|---|---|---|---|---|"
ALL = "all of `make test`"
ROW = re.compile(r"^\| (\d.*?) \|$", re.MULTILINE)


class RunRow(NamedTuple):
    python: str
    postgresql: str
    tenure: str
    day: str
    tests: str
    """Which: all, or the folders below `tests/`."""
    passed: str
    failed: str
    skipped: str

    @property
    def versions(self) -> tuple[list[int], list[int]]:
        """By which a later run replaces this one: 3.13 and 17."""
        return _leading(self.python, parts=2), _leading(self.postgresql, parts=1)


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.run_record", description=__doc__)
    parser.add_argument("--publish", type=Path, metavar="PAGE", help="write the row into the table of this page")
    parser.add_argument("pytest", nargs="*", help='what pytest is called with; default: -m "not slow"')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        words = options.pytest or ["-m", "not slow", "-n", str(2 * (os.cpu_count() or 1)), "--dist", "worksteal"]
        code = subprocess.run([sys.executable, "-m", "pytest", *words, f"--junitxml={report}"], check=False).returncode
        row = row_of(report.read_text("utf-8"), server_version(), part(options.pytest))
    print(" | ".join(row))  # noqa: T201 - a program
    if options.publish:
        publish(options.publish, BLOCK, table(merged(rows_in(options.publish.read_text("utf-8")), row)))
    return code


def part(words: list[str]) -> str:
    """What pytest was asked to run: `chains, store`."""
    paths = sorted(word.removeprefix("tests/").rstrip("/") for word in words if word.startswith("tests/"))
    return ", ".join(paths) or ALL


def row_of(report: str, postgresql: str, tests: str = ALL) -> RunRow:
    """Of a JUnit report."""
    suites = list(ET.fromstring(report).iter("testsuite"))
    total, failures, errors, skipped = (
        sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    counts = (f"{total - failures - errors - skipped:,}", f"{failures + errors:,}", f"{skipped:,}")
    return RunRow(platform.python_version(), postgresql, __version__, f"{datetime.now(UTC):%Y-%m-%d}", tests, *counts)


def server_version() -> str:
    if dsn := os.environ.get("TENURE_TEST_DSN"):
        with psycopg.connect(dsn) as connection:
            return connection.info.parameter_status("server_version") or "unknown"
    return find_binaries().version


def rows_in(page: str) -> list[RunRow]:
    _, _, block = page.partition(f"<!-- {BLOCK}: begin")
    block, _, _ = block.partition(f"<!-- {BLOCK}: end")
    return [RunRow(*found.split(" | ")) for found in ROW.findall(block)]


def merged(rows: list[RunRow], new: RunRow) -> list[RunRow]:
    kept = [row for row in rows if row.versions != new.versions]
    return sorted([*kept, new], key=lambda row: row.versions)


def table(rows: list[RunRow]) -> str:
    return "\n".join([HEAD, *(f"| {' | '.join(row)} |" for row in rows)])


def _leading(version: str, *, parts: int) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:parts]]


if __name__ == "__main__":
    sys.exit(main())
