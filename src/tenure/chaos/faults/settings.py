"""Settings of the database or of the role that nobody would expect, for all sessions that begin while they hold."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

import psycopg
from psycopg import sql

from tenure.chaos.field import Field, NotNow

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
FOR_A_POOLER = ("search_path", "DateStyle", "IntervalStyle", "TimeZone", "client_encoding", "bytea_output", "extra_float_digits")
"""Behind a transaction pooler no connection can override the others, so they are set for the role of the other workers only."""

LONGEST = 15.0
OTHERS = """select count(pg_terminate_backend(pid)) from pg_stat_activity
     where datname = current_database() and backend_type = 'client backend' and application_name <> 'chaos'"""
CHANGED = """select exists (
    select from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase where d.datname = current_database())"""

_at_work = asyncio.Lock()


async def hostile_settings(field: Field, draws: Random) -> str:
    if _at_work.locked():
        raise NotNow("other settings hold at this moment")
    of_role = draws.random() < 0.5
    names = list(HOSTILE) if of_role else list(FOR_A_POOLER)
    chosen = {name: draws.choice(HOSTILE[name]) for name in draws.sample(names, draws.randint(1, 4))}
    seconds = draws.uniform(8, LONGEST)
    async with _at_work:
        try:
            for name, value in chosen.items():
                await _alter(field, sql.SQL("set {} = {}").format(sql.Identifier(name), _value(name, value)), of_role=of_role)
            await field.ask(OTHERS)
            await asyncio.sleep(seconds)
        finally:
            with suppress(psycopg.Error, OSError):  # then it is done when the campaign is healed
                await usual_settings(field)
    where = "the role" if of_role else "the database"
    return f"{where}: {', '.join(f'{name} = {value}' for name, value in chosen.items())}, for {seconds:.1f} s"


async def usual_settings(field: Field) -> None:
    [(changed,)] = await field.ask(CHANGED)
    if not changed:
        return
    for of_role in (True, False):
        await _alter(field, sql.SQL("reset all"), of_role=of_role)
    await field.ask(OTHERS)


async def _alter(field: Field, change: sql.Composable, *, of_role: bool) -> None:
    async with await field.connect() as connection:
        [(role, database)] = await (await connection.execute("select current_user, current_database()")).fetchall()
        target = sql.SQL("database {}").format(sql.Identifier(database))
        if of_role:
            target = sql.SQL("role {} in {}").format(sql.Identifier(role), target)
        await connection.execute(sql.SQL("alter {} {}").format(target, change))


def _value(name: str, value: str) -> sql.Composable:
    """A list of schemas or styles is not one word in quotes."""
    return sql.SQL(value) if name == "search_path" else sql.Literal(value)
