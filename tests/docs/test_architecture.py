"""The architecture page names files that exist, and every part of the worker."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
SOURCE = ROOT / "src" / "tenure"

FILE = re.compile(r"`([\w/]+\.(?:py|sql))`")
FOLDERS = ("", "client", "leader", "worker/claim", "worker/run", "store", "store/sql/jobs", "store/sql/schedules")
"""Where a path in the text may begin."""


def test_every_file_that_the_page_names_exists():
    named = set(FILE.findall(PAGE))
    assert len(named) > 30
    assert {
        name for name in named if not any((path / name).exists() for path in (ROOT, *(SOURCE / folder for folder in FOLDERS)))
    } == set()


def test_the_path_of_a_job_has_at_most_twelve_steps():
    steps = [int(number) for number in re.findall(r"^\| (\d+) \| `", PAGE, re.MULTILINE)]
    assert steps == list(range(1, len(steps) + 1))
    assert 0 < len(steps) <= 12


def test_every_part_of_the_worker_is_named():
    parts = {file.stem for file in (SOURCE / "worker").rglob("*.py")} - {"__init__"}
    assert {part for part in parts if not re.search(rf"\b{part}\b", PAGE)} == set()


def test_every_package_is_in_the_picture():
    packages = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    packages -= {"__init__", "__main__"}
    assert {name for name in packages if not re.search(rf"^  .*\b{name}\b", PAGE, re.MULTILINE)} == set()
