"""The documentation site builds without a warning: no broken link, no page missing from the menu, no broken docstring."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tenure

ROOT = Path(__file__).parents[2]


def test_the_api_reference_has_every_public_name():
    pages = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs" / "reference" / "api").glob("*.rst"))
    documented = re.findall(r"^\.\. auto\w+:: tenure\.(\w+)$", pages, re.MULTILINE)
    assert sorted(documented) == sorted(set(tenure.__all__) - {"__version__"})


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path):
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "--fail-on-warning", "--keep-going", "-b", "html", "docs", tmp_path / "site"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    assert "async" in (tmp_path / "site" / "reference" / "api" / "jobs.html").read_text("utf-8")
