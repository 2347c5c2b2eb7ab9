"""Every table is locked by some fault, or is named here with the reason why not."""

from __future__ import annotations

import psycopg
import pytest

from tenure.chaos.faults import tables

NEVER_LOCKED = {"migrations": "read when a process starts, which the checker does not measure"}

TABLES = """
    select c.relname from pg_class c
     where c.relnamespace = 'tenure'::regnamespace and c.relkind in ('r', 'p')
       and (not c.relispartition or c.relname = 'history_default')"""


def test_every_table_is_the_one_of_live_jobs_or_core_or_aside(sql):
    listed = ["jobs", *tables.CORE, *tables.ASIDE, *NEVER_LOCKED]
    assert sorted(listed) == sorted(name for (name,) in sql(TABLES))


@pytest.mark.parametrize("mode", sorted({*tables.MODES, *tables.JOBS_MODES}))
def test_every_table_can_be_locked_in_each_mode(dsn, mode):
    with psycopg.connect(dsn) as connection:
        for table in ("jobs", *tables.CORE, *tables.ASIDE):
            connection.execute(f"lock table only tenure.{table} in {mode} mode")
        connection.rollback()
