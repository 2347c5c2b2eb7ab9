"""Blocks of the docs that a script writes: `<!-- name: begin, written by a script -->` to `<!-- name: end -->`."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import FILES, name_of

_BLOCK = re.compile(r"^<!-- (\w+): begin, written by a script -->\n(.*?)^<!-- \1: end -->$", re.MULTILINE | re.DOTALL)

TEXTS = {name_of(file): file.read_text("utf-8") for file in FILES}
WRITTEN = {(page, name): body for page, text in TEXTS.items() for name, body in _BLOCK.findall(text)}


def test_every_block_that_begins_has_an_end():
    begun = sum(text.count("begin, written by a script -->") for text in TEXTS.values())
    assert begun == len(WRITTEN) > 0


@pytest.mark.parametrize(("page", "name"), WRITTEN)
def test_no_block_is_empty(page, name):
    assert WRITTEN[page, name].strip(), f"{page}: the block {name!r} is empty; run the script that writes it"
