"""What the pages for operators list is what the code has."""

from __future__ import annotations

from tenure.store.connecting import PINNED, PLANNER
from tests.docs.pages import ROOT, blocks_of

WORKERS = "docs/operations/workers.md"


def test_the_planner_settings_of_a_role_behind_a_pooler_are_ours():
    [block] = [block for block in blocks_of(WORKERS, "sql") if "alter role" in block.text]
    given = {line.removeprefix("alter role shop_worker set ").rstrip(";") for line in block.lines}
    # What is on by default need not be set.
    assert given == {f"{name} = {value}" for name, value in PLANNER.items() if value != "on"}


def test_the_other_settings_are_named_too():
    section = (ROOT / WORKERS).read_text("utf-8").partition("## PgBouncer\n")[2].partition("\n## ")[0]
    for name in PINNED.keys() - {"idle_session_timeout"}:  # the pooler decides how long its connections live
        assert f"`{name}" in section
