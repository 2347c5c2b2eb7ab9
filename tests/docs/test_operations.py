"""What the pages for operators list is what the code has."""

from __future__ import annotations

import re

import psycopg
import pytest

from tenure.store.connecting import PINNED, PLANNER
from tests.docs.pages import PAGES, ROOT, blocks_of

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


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page, "sql") and not blocks_of(page, "python")])
def test_the_sql_of_pages_without_programs_runs(page, dsn):
    """In a transaction that is rolled back. What changes the whole server is not run: only its settings are looked up."""
    with psycopg.connect(dsn) as connection:
        connection.execute("create role shop_worker")
        for block in blocks_of(page, "sql"):
            for statement in filter(None, map(str.strip, block.text.split(";"))):
                if changed := re.match(r"alter system set (\w+)", statement):
                    connection.execute("select current_setting(%s)", changed.groups())
                elif "pg_reload_conf" not in statement:
                    connection.execute(statement.encode())
        connection.rollback()
