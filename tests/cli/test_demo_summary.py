"""The commands that the demo ends with can be typed as they are shown."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tenure.cli.demo_summary import next_steps


def test_commands_name_a_program_that_exists_in_the_folder_where_they_are_typed(tmp_path, monkeypatch):
    installed = tmp_path / "checkout" / ".venv" / "bin" / "tenure"
    installed.parent.mkdir(parents=True)
    installed.touch()
    monkeypatch.chdir(tmp_path / "checkout")
    monkeypatch.setattr(sys, "argv", [".venv/bin/tenure", "demo"])
    *others, last = [re.sub(r"\[.*?\]", "", line).split() for line in next_steps(kept=False)]
    assert {Path(words[0]).resolve() for words in others} == {installed}
    assert last[:3] == ["cd", "shop", "&&"]
    assert Path("shop", last[3]).resolve() == installed
