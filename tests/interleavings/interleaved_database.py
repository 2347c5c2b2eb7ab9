"""The database on which schedules are played: three sessions, one that inspects them, a clock that steps move, a cheap reset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Self

import psycopg

from tenure.store.connecting import PLANNER
from tests.interleavings import world
from tests.interleavings.sessions import Call, Session
from tests.interleavings.world import World
from tests.store.database import Database

# Found before PostgreSQL's own, for everything that the sessions run: time does not pass until a step moves it, at once for
# all and without a lock. Functions with a search_path of their own (tenure.enqueue) keep the real clock, which is far behind.
CLOCK = """
    create schema injected;
    create sequence injected.skew minvalue 0;
    create function injected.clock_timestamp() returns timestamptz language sql volatile as
        $$ select timestamptz '2099-01-01Z' + make_interval(secs => pg_sequence_last_value('injected.skew'::regclass)::float8) $$;
    create function injected.now() returns timestamptz language sql stable as
        $$ select timestamptz '2099-01-01Z' + make_interval(secs => pg_sequence_last_value('injected.skew'::regclass)::float8) $$;
    create function injected.seconds(at timestamptz) returns integer language sql immutable as
        $$ select extract(epoch from at - timestamptz '2099-01-01Z')::integer $$;
    create table injected.effects (job_id uuid not null, claim_id uuid not null);
    select setval('injected.skew', 0);
"""

# One partition is enough, and what is vacuumed here is vacuumed between schedules.
CALM = """
    select format('drop table %s', i.inhrelid::regclass) from pg_inherits i
     where i.inhparent = 'tenure.history'::regclass and i.inhrelid <> 'tenure.history_default'::regclass
    union all
    select format('alter table %s set (autovacuum_enabled = off)', c.oid::regclass) from pg_class c
     where c.relnamespace in ('tenure'::regnamespace, 'injected'::regnamespace) and c.relkind = 'r'
       and not (c.relispartition and c.relname <> 'history_default')
"""

TABLES = (
    "tenure.jobs",
    "tenure.claims",
    "tenure.history",
    "tenure.workers",
    "tenure.leases",
    "tenure.queues",
    "tenure.keys",
    "tenure.progress",
    "tenure.logs",
    "tenure.incidents",
    "tenure.watches",
    "tenure.tallies",
    "tenure.counters",
    "tenure.minutes",
    "tenure.latencies",
    "tenure.retentions",
    "tenure.schedules",
    "tenure.ticks",
    "tenure.limits",
    "tenure.starts",
    "tenure.blocked",
    "tenure.blockers",
    "tenure.chain_endings",
    "injected.effects",
)

# Without those that PostgreSQL computes itself.
WRITABLE = """
    select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
     where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''"""

SCHEDULES_PER_VACUUM = 200
TIME = {"search_path": "injected,pg_catalog"}
SETTINGS = {**TIME, **PLANNER, "statement_timeout": "20s"}
# Detects a deadlock almost at once. Only superusers may set this.
IMPATIENT = {"deadlock_timeout": "3ms"}


class InterleavedDatabase:
    def __init__(self, dsn: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(CLOCK.encode(), prepare=False)
            for (statement,) in connection.execute(CALM).fetchall():
                connection.execute(statement)
            [(superuser,)] = connection.execute("select current_setting('is_superuser') = 'on'").fetchall()
        self._settings = {**SETTINGS, **(IMPATIENT if superuser else {})}
        self.dsn = dsn
        self.sessions = self._connect()
        self._inspector = Session(dsn, **TIME)
        self._kept: set[str] = set()
        self._worlds: dict[str, World] = {}
        self._played = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for session in (*self.sessions, self._inspector):
            session.close()

    @contextmanager
    def reconnecting_after_errors(self) -> Iterator[None]:
        """Leaves no transaction open after an error: the sessions are replaced."""
        try:
            yield
        except BaseException:
            for session in self.sessions:
                session.close()
            self.sessions = self._connect()
            raise

    def keep(self, start_state: str, prepare: Callable[[Database], None]) -> None:
        """Makes a start state once, by the product's own statements, and keeps what the tables then hold."""
        if start_state in self._kept:
            return
        with Database(self.dsn, **TIME) as database:
            database.sql(_emptying())
            database.sql("select setval('injected.skew', 0)")
            prepare(database)
            filled = [table for table in TABLES if database.sql(f"select exists (select from {table})") == [(True,)]]
            database.sql(f"create schema start_state_{start_state}")
            for table in filled:
                database.sql(f"create table {_copy(start_state, table)} as table {table}")
            [(clock,)] = database.sql("select last_value from injected.skew")
            columns = {table: database.sql(WRITABLE, table)[0][0] for table in filled}
            database.sql(_restoring(start_state, columns, clock))
        self._kept.add(start_state)

    def restore(self, start_state: str) -> World:
        self._played += 1
        if self._played % SCHEDULES_PER_VACUUM == 0:
            self._inspector.run(Call("vacuum (truncate off) " + ", ".join(TABLES)))
        self._ask(_restore_call(start_state))
        if start_state not in self._worlds:
            self._worlds[start_state] = self.look()
        return self._worlds[start_state]

    def look(self) -> World:
        return world.read(self._ask(Call(world.SNAPSHOT)) or "")

    def pass_time(self, seconds: int) -> None:
        self._ask(
            Call(
                "select setval('injected.skew', pg_sequence_last_value('injected.skew'::regclass) + $1)", (str(seconds).encode(),)
            )
        )

    def blockers(self, sessions: Iterable[Session]) -> dict[int, set[int]]:
        """By process: the processes that it waits for."""
        pids = "{" + ",".join(str(session.pid) for session in sessions) + "}"
        [reply] = self._inspector.run(Call("select p, pg_blocking_pids(p) from unnest($1::integer[]) as p", (pids.encode(),)))
        return {int(pid or 0): {int(one) for one in (found or "").strip("{}").split(",") if one} for pid, found in reply.rows}

    def _connect(self) -> list[Session]:
        return [Session(self.dsn, **self._settings) for _ in range(3)]

    def _ask(self, call: Call) -> str | None:
        [reply] = self._inspector.run(call)
        assert reply.fault is None, reply.words
        return reply.rows[0][0]


@cache
def _restore_call(start_state: str) -> Call:
    return Call(f"select start_state_{start_state}.restore()")


def _emptying() -> str:
    return "".join(f"delete from {table};" for table in TABLES)


def _copy(start_state: str, table: str) -> str:
    return f"start_state_{start_state}.{table.replace('.', '_')}"


def _restoring(start_state: str, filled: dict[str, str], clock: int) -> str:
    """A function, because its plans are made once. `filled`: by table, its columns."""
    filling = "".join(
        f"insert into {table} ({columns}) select {columns} from {_copy(start_state, table)};" for table, columns in filled.items()
    )
    return f"""
        create function start_state_{start_state}.restore() returns void language plpgsql as $$
        begin
            {_emptying()}
            {filling}
            perform setval('injected.skew', {clock});
        end $$
    """
