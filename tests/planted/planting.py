"""A copy of the source with one bug in it."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.planted.bug import Bug

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


class NotPlantable(Exception):
    """The source has changed: the bug must be rewritten."""


def copy_source(source: Path, copy: Path) -> None:
    """With the times of the files, so that bytecode beside them stays valid."""
    shutil.copytree(source, copy)


def plant(bug: Bug, source: Path, copy: Path) -> None:
    """Copies the source, and puts the bug into the copy."""
    texts = changed(bug, source)
    copy_source(source, copy)
    for file, text in texts.items():
        (copy / "tenure" / file).write_text(text, "utf-8")


def changed(bug: Bug, source: Path = SOURCE) -> dict[str, str]:
    """The files that the bug changes, as they are with it."""
    texts: dict[str, str] = {}
    for edit in bug.edits:
        text = texts.get(edit.file) or (source / "tenure" / edit.file).read_text("utf-8")
        if (found := text.count(edit.old)) != 1:
            raise NotPlantable(f"{bug.name}: the old text occurs {found} times in {edit.file}")
        if edit.new == edit.old:
            raise NotPlantable(f"{bug.name}: nothing changes in {edit.file}")
        texts[edit.file] = text.replace(edit.old, edit.new)
    return texts
