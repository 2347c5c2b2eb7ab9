"""Figures go into a page between their marks, and nowhere else."""

from __future__ import annotations

import pytest

from tenure.chaos.summary import publish, table
from tenure.model.errors import ConfigError

MARKS = "<!-- campaign: begin, written by a script -->", "<!-- campaign: end -->"


def test_what_stood_between_the_marks_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n\n{MARKS[0]}\nold\n{MARKS[1]}\n\nAfter\n")
    publish(page, "campaign", "new")
    publish(page, "campaign", "newer")
    assert page.read_text() == f"# Before\n\n{MARKS[0]}\n\nnewer\n\n{MARKS[1]}\n\nAfter\n"


@pytest.mark.parametrize("text", ["", MARKS[0], f"{MARKS[1]}\n{MARKS[0]}"])
def test_a_page_without_marks_is_left_alone(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ConfigError, match="put the lines"):
        publish(page, "campaign", "new")
    assert page.read_text() == text


def test_tables():
    assert table(("a", "b"), [(1, "x")]) == ["| a | b |", "| --- | --- |", "| 1 | x |"]
