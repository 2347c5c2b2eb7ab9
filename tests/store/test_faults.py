"""What an error of PostgreSQL means: each is exactly one thing, has its own name, and shows no password and no row."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from tenure.model.errors import SchemaMismatch, StoreUnavailable, TenureError
from tenure.store import claims, faults, jobs
from tenure.store.connecting import connect
from tenure.store.faults import ConnectionRejected, Refused, translated
from tenure.store.groups import send_or_halve
from tenure.store.link import Link
from tenure.store.query import INTEGER, Query
from tenure.store.target import DatabaseTarget

# After these the same statement may succeed later, without a change.
PASSING = {"25006", "25P03", "25P04", "26000", "28000", "28P01", "3D000", "40001", "40003", "40P01", "42P05", "55P03", "57014"}
PASSING_CLASSES = ("08", "53", "57P", "58")
MISSING = {"42P01", "3F000", "42883", "42703"}
ALL = sorted(state for state in errors._sqlcodes if len(state) == 5)


def of(state):
    error = errors.lookup(state)("words")
    error.sqlstate = state
    return error


@pytest.mark.parametrize("state", [*ALL, "AUDIT", "ZZ999", "45000"])
def test_every_code_is_exactly_one_thing(state):
    try:
        error = of(state)
    except KeyError:
        error = psycopg.DatabaseError("words")
        error.sqlstate = state
    told = translated(error, statement="jobs/finish_jobs", server="here")
    if state in PASSING or state.startswith(PASSING_CLASSES):
        assert isinstance(told, StoreUnavailable)
    elif state in MISSING:
        assert isinstance(told, SchemaMismatch)
    else:
        assert type(told) is Refused
        assert told.sqlstate == state


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.OperationalError("the connection is closed"), StoreUnavailable),
        (psycopg.InterfaceError("the connection is closed"), StoreUnavailable),
        (ConnectionResetError("reset"), StoreUnavailable),
        (TimeoutError(), StoreUnavailable),
        (psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"), Refused),
        (psycopg.ProgrammingError("cannot adapt type 'object'"), Refused),
        (psycopg.NotSupportedError("no"), Refused),
        (UnicodeEncodeError("latin-1", "\u2603", 0, 1, "ordinal not in range(256)"), Refused),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), Refused),
    ],
)
def test_errors_of_the_driver_itself_are_distinguished(error, kind):
    assert type(translated(error)) is kind


def test_what_no_driver_raises_stays_as_it_is():
    assert translated(KeyError("bug")) is None


@pytest.mark.parametrize(
    ("words", "cause", "way_out"),
    [
        ('FATAL:  password authentication failed for user "app"', "authentication", "check user and password"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1"', "authentication", "pg_hba.conf"),
        ('FATAL:  role "app" is not permitted to log in', "authentication", "check user"),
        ('FATAL:  database "shop" does not exist', "unknown_database", "create the database"),
        ('FATAL:  role "app" does not exist', "unknown_role", "create the role"),
        ('FATAL:  permission denied for database "shop"', "permission", "grant connect"),
        ("FATAL:  unsupported startup parameter: options", "pooler", "pgbouncer=true"),
        ("server does not support SSL, but SSL was required", "tls", "sslmode"),
        ("FATAL:  sorry, too many clients already", "too_many_connections", "max_connections"),
        ("FATAL:  remaining connection slots are reserved for SUPERUSER", "too_many_connections", "pooler"),
        ("FATAL:  the database system is starting up", "connection", ""),
        ('connection to server failed: Connection refused\nFATAL:  role "app" does not exist', "connection", ""),
    ],
)  # fmt: skip
def test_a_connection_that_cannot_be_made_reports_why_and_what_to_do(words, cause, way_out):
    told = translated(psycopg.OperationalError(words), statement="jobs/claim_jobs")
    assert (told.cause, told.statement) == (cause, "")
    assert way_out in str(told)
    assert isinstance(told, ConnectionRejected) == (cause not in ("connection", "too_many_connections"))


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("the database system is starting up", "PostgreSQL is starting up: "),
        ("the database system is shutting down", "PostgreSQL is shutting down: "),
        ("the database system is in recovery mode", "PostgreSQL is in recovery: "),
        ("the database system is not yet accepting connections", "PostgreSQL is in recovery: "),
        ("the database system is not accepting connections", "PostgreSQL is in recovery: "),
    ],
)
def test_a_server_that_answers_that_it_is_not_ready_is_named_so_and_waited_for(words, what):
    with_code = errors.CannotConnectNow(words)
    with_code.sqlstate = "57P03"  # asyncpg gives the code
    several = psycopg.OperationalError(f"host a: Connection refused\nhost b: FATAL:  {words}")
    for error in (psycopg.OperationalError(f"FATAL:  {words}"), with_code, several):
        told = translated(error)
        assert str(told).startswith(what)
        assert (type(told), told.cause) == (StoreUnavailable, "connection")


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"dbname": "no_such_database"}, "unknown_database"),
        ({"user": "no_such_role"}, "unknown_role"),
    ],
)
async def test_the_real_server_is_understood(dsn, change, cause):
    place = DatabaseTarget.at(psycopg.conninfo.make_conninfo(dsn, **change))
    async with Link(place, "test") as link:
        with pytest.raises(ConnectionRejected) as raised:
            await link.open()
    assert raised.value.cause == cause


def test_no_password_is_shown(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "from the environment")
    words = 'connection to "postgresql://app:s3cret@db" failed, also with "from the environment"'
    told = translated(psycopg.OperationalError(words), dsn="postgresql://app:s3cret@db/shop")
    assert "s3cret" not in str(told)
    assert "environment" not in str(told)
    assert "s3cret" not in repr(
        DatabaseTarget.at("postgresql://app:s3cret@db/shop", listen_dsn="postgresql://app:s3cret@db2/shop")
    )


def test_a_refusal_does_not_show_the_row(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create temporary table t (secret text primary key)")
        connection.execute("insert into t values ('payload')")
        with pytest.raises(errors.UniqueViolation) as raised:
            connection.execute("insert into t values ('payload')")
    assert "payload" in str(raised.value)
    assert "payload" not in str(translated(raised.value))


# Rows that a trigger of the user's refuses, for any reason


def refusing(database, body):
    database.sql(f"create function public.audit() returns trigger language plpgsql as $$ begin {body} return new; end $$")
    database.sql("create trigger audit before insert on tenure.history for each row execute function public.audit()")


@pytest.fixture
def triggers(database):
    yield lambda body: refusing(database, body)
    database.sql("drop trigger if exists audit on tenure.history")
    database.sql("drop function if exists public.audit")


REASONS = {
    "a code of its own": "raise exception 'audit' using errcode = 'AUDIT';",
    "no right": "raise exception 'audit' using errcode = '42501';",
    "not supported": "raise exception 'audit' using errcode = '0A000';",
    "a table that is missing": "insert into public.no_such_table values (1);",
    "a function that is missing": "perform public.no_such_function();",
    "an internal error": "raise exception 'audit' using errcode = 'XX000';",
}


@pytest.mark.parametrize("reason", REASONS)
async def test_one_row_that_is_refused_for_any_reason_is_found_and_the_others_are_written(
    database_target, database, triggers, reason
):
    triggers(f"if new.kind = 'bad' then {REASONS[reason]} end if;")
    worker = database.worker()
    database.enqueue(*({"kind": "bad" if n == 3 else "work"} for n in range(8)))
    claim = database.claim(worker, kinds=("work", "bad"))
    found = []

    async with Link(database_target, "settle", hot=True) as link:

        async def send(group):
            await link.fetch(jobs.finish(claim.finished(*(job["id"] for job in group), output=1)))

        async def refused(job, error):
            found.append((job["kind"], type(error)))

        await send_or_halve(claim.jobs, send, refused)
        assert link.sessions == 1
    assert found == [("bad", Refused)]
    assert database.sql("select count(*) from tenure.history") == [(7,)]


async def test_a_table_of_ours_that_is_missing_is_a_matter_of_the_schema(database_target, fresh_dsn):
    async with await connect(DatabaseTarget.at(fresh_dsn), "test") as connection:
        await connection.execute("alter table tenure.jobs rename to gone")
    async with Link(DatabaseTarget.at(fresh_dsn), "test") as link:
        for query in (claims.check("[]"), jobs.enqueue('[{"kind": "work"}]')):
            with pytest.raises(SchemaMismatch, match="tenure migrate"):
                await link.fetch(query)


async def test_a_statement_that_was_prepared_before_a_table_changed_is_repeated_on_a_new_connection(
    database_target, database, monkeypatch
):
    """`cached plan must not change result type` would else be raised for ever."""
    database.sql("create table public.changing (a integer)")
    monkeypatch.setattr("tenure.store.prepared.statement", lambda *_: "select * from public.changing")
    query = Query("test/changing", INTEGER)
    try:
        async with Link(database_target, "test") as link:
            for _ in range(2):
                await link.fetch(query)
            database.sql("alter table public.changing add b integer")
            with pytest.raises(StoreUnavailable) as raised:
                await link.fetch(query)
            assert raised.value.cause == "stale_plan"
            await link.fetch(query)
    finally:
        database.sql("drop table public.changing")


def test_each_is_a_tenure_error():
    assert all(issubclass(kind, TenureError) for kind in (Refused, ConnectionRejected, faults.StatementTimeout))
