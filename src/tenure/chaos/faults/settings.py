"""Unusual settings of the database or of the role, for all sessions that begin while they are set."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

import psycopg
from psycopg import sql

from tenure.chaos.faults.base import FaultResult, FaultSkipped
from tenure.chaos.testbed import Testbed

HOSTILE: dict[str, tuple[str, ...]] = {
    "default_transaction_isolation": ("serializable", "repeatable read"),
    "statement_timeout": ("250ms",),
    "lock_timeout": ("20ms",),
    "idle_in_transaction_session_timeout": ("2s",),
    "search_path": ("nothing", "pg_temp"),
    "DateStyle": ("German", "SQL, DMY"),
    "IntervalStyle": ("sql_standard", "postgres_verbose"),
    "TimeZone": ("Asia/Kathmandu",),
    "standard_conforming_strings": ("off",),
    "client_encoding": ("LATIN1",),
    "bytea_output": ("escape",),
    "extra_float_digits": ("-15",),
}
WITH_POOLER = ("search_path", "DateStyle", "IntervalStyle", "TimeZone", "client_encoding", "bytea_output", "extra_float_digits")
"""Behind a transaction pooler no connection can override the other settings, so those are set only for the role of the other
workers."""

MAX_SECONDS = 15.0
END_OTHER_SESSIONS = """select count(pg_terminate_backend(pid)) from pg_stat_activity
     where datname = current_database() and backend_type = 'client backend' and application_name <> 'chaos'"""
CHANGED = """select exists (
    select from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase where d.datname = current_database())"""

_active = asyncio.Lock()


async def hostile_settings(testbed: Testbed, random: Random) -> FaultResult:
    if _active.locked():
        raise FaultSkipped("other unusual settings are active")
    of_role = random.random() < 0.5
    names = list(HOSTILE) if of_role else list(WITH_POOLER)
    chosen = {name: random.choice(HOSTILE[name]) for name in random.sample(names, random.randint(1, 4))}
    seconds = random.uniform(8, MAX_SECONDS)
    async with _active:
        try:
            for name, value in chosen.items():
                await _alter(testbed, sql.SQL("set {} = {}").format(sql.Identifier(name), _value(name, value)), of_role=of_role)
            await testbed.fetch(END_OTHER_SESSIONS)
            await asyncio.sleep(seconds)
        finally:
            with suppress(psycopg.Error, OSError):  # then it is done when the faults end
                await usual_settings(testbed)
    where = "the role" if of_role else "the database"
    return FaultResult(f"{where}: {', '.join(f'{name} = {value}' for name, value in chosen.items())}, for {seconds:.1f} s")


async def usual_settings(testbed: Testbed) -> None:
    [(changed,)] = await testbed.fetch(CHANGED)
    if not changed:
        return
    for of_role in (True, False):
        await _alter(testbed, sql.SQL("reset all"), of_role=of_role)
    await testbed.fetch(END_OTHER_SESSIONS)


async def _alter(testbed: Testbed, change: sql.Composable, *, of_role: bool) -> None:
    async with await testbed.connect() as connection:
        [(role, database)] = await (await connection.execute("select current_user, current_database()")).fetchall()
        target = sql.SQL("database {}").format(sql.Identifier(database))
        if of_role:
            target = sql.SQL("role {} in {}").format(sql.Identifier(role), target)
        await connection.execute(sql.SQL("alter {} {}").format(target, change))


def _value(name: str, value: str) -> sql.Composable:
    """A list of schemas must not be one quoted word."""
    return sql.SQL(value) if name == "search_path" else sql.Literal(value)
