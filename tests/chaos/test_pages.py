"""Figures are written between the markers of a page, and nowhere else."""

from __future__ import annotations

import pytest

from tenure.chaos.summary import publish, table
from tenure.model.errors import ConfigError

MARKERS = "<!-- campaign: begin, written by a script -->", "<!-- campaign: end -->"


def test_the_text_between_the_markers_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n\n{MARKERS[0]}\nold\n{MARKERS[1]}\n\nAfter\n")
    publish(page, "campaign", "new")
    publish(page, "campaign", "newer")
    assert page.read_text() == f"# Before\n\n{MARKERS[0]}\n\nnewer\n\n{MARKERS[1]}\n\nAfter\n"


@pytest.mark.parametrize("text", ["", MARKERS[0], f"{MARKERS[1]}\n{MARKERS[0]}"])
def test_a_page_without_markers_stays_unchanged(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ConfigError, match="put the lines"):
        publish(page, "campaign", "new")
    assert page.read_text() == text


def test_tables():
    assert table(("a", "b"), [(1, "x")]) == ["| a | b |", "| --- | --- |", "| 1 | x |"]
