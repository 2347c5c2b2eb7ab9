"""The pages of the README and the docs, and the code blocks in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# ((?:\w+/)?\w+\.py)(, continued)?\n")


class Block(NamedTuple):
    page: str
    language: str
    text: str

    @property
    def lines(self) -> list[str]:
        """Without comments and empty lines."""
        return [line for line in self.text.splitlines() if line and not line.startswith("#")]

    @property
    def file(self) -> str:
        """Every program names its file, so that another can import it."""
        named = _NAME.match(self.text)
        assert named, f"{self.page}: a program does not begin with its name, as in `# jobs.py`:\n{self.text}"
        return named[1]

    @property
    def continues(self) -> bool:
        """To be added to a file that was begun further up."""
        named = _NAME.match(self.text)
        return named is not None and named[2] is not None


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


BLOCKS = [Block(name_of(file), *found) for file in FILES for found in _FENCE.findall(file.read_text("utf-8"))]
PAGES = list(dict.fromkeys(block.page for block in BLOCKS))


def blocks_of(page: str, *languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.page == page and (not languages or block.language in languages)]
