"""The documentation site builds without a warning: no broken link, no page missing from the menu, no broken docstring."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tenure
import tenure.testing

ROOT = Path(__file__).parents[2]


API = ROOT / "docs" / "reference" / "api"


def test_the_api_reference_has_every_public_name():
    pages = "\n".join(page.read_text("utf-8") for page in API.glob("*.rst"))
    documented = re.findall(r"^\.\. auto\w+:: tenure\.(\w+)$", pages, re.MULTILINE)
    assert sorted(documented) == sorted(set(tenure.__all__) - {"__version__"})


def test_the_api_reference_has_every_name_for_tests():
    documented = re.findall(r"^\.\. auto\w+:: (\w+)$", (API / "testing.rst").read_text("utf-8"), re.MULTILINE)
    assert sorted(documented) == sorted(tenure.testing.__all__)


def test_the_api_reference_has_every_framework():
    text = (API / "integrations.rst").read_text("utf-8")
    folder = Path(tenure.__file__).parent / "integrations"
    names = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    names -= {"__init__", "http_errors", "exported_settings", "celery_calls"}  # parts that the others use
    assert names <= set(re.findall(r"^\.\. [\w:]+:: tenure\.integrations\.(\w+)\.", text, re.MULTILINE))


def test_the_menu_has_the_guides_under_the_headings_and_in_the_order_of_the_front_page():
    """Sphinx itself reports a page that the menu does not have."""
    docs = ROOT / "docs"
    front = re.split(r"^## (.+)$", (docs / "index.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    shown = {title: re.findall(r"\]\(([\w/-]+)\.md\)", text) for title, text in zip(front[::2], front[1::2], strict=True)}
    menu = dict(re.findall(r":caption: (.+?)\n(.+?)^:::", (docs / "contents.md").read_text("utf-8"), re.MULTILINE | re.DOTALL))
    assert list(menu) == list(shown)
    for title, pages in shown.items():
        listed = menu[title].split()
        assert [page for page in listed if page in pages] == [page for page in pages if page in listed], title
        guides = {page for page in listed if page.startswith(("how-to/", "operations/"))}
        assert guides == {page for page in pages if page.startswith(("how-to/", "operations/"))}, title


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
