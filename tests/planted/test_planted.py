"""The list of planted bugs fits the source and the tests as they are. Whether they are caught: `python -m tests.planted`."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tests.planted import record
from tests.planted.bugs import BUGS
from tests.planted.planting import ROOT, changed

FEWEST = 26

each_bug = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)


def test_there_are_enough_and_each_has_a_name_of_its_own():
    names = [bug.name for bug in BUGS]
    assert len(names) >= FEWEST
    assert len(set(names)) == len(names)


@each_bug
def test_it_can_be_planted_and_the_code_with_it_can_be_read(bug):
    texts = changed(bug)
    assert texts
    for file, text in texts.items():
        if file.endswith(".py"):
            ast.parse(text, file)


@each_bug
def test_it_describes_what_it_breaks(bug):
    assert bug.breaks
    assert "\n" not in bug.breaks


@each_bug
def test_the_tests_that_catch_it_exist(bug):
    assert bug.caught_by
    for test in bug.caught_by:
        file, _, name = test.partition("::")
        assert not name or name.partition("[")[0] in functions_in(file), f"no such test: {test}"
        assert name or functions_in(file), f"no tests in {file}"


def test_the_page_says_how_many_bugs_there_are_and_which_were_hunted():
    page = record.PAGE.read_text("utf-8")
    block = page.partition("<!-- planted: begin, written by a script -->")[2].partition("<!-- planted: end -->")[0]
    remedy = 'run python -c "from tests.planted import record; record.publish()"'
    assert block.strip() == record.block().strip(), remedy


@cache
def functions_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
