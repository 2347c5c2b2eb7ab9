"""Which DSNs are understood, and that none is ever quoted in an error."""

from __future__ import annotations

import logging

import pytest
from psycopg.conninfo import conninfo_to_dict

from tenure import ConfigError, Tenure
from tenure.store.dsn import read_dsn
from tenure.store.target import DatabaseTarget

SECRET = "s3cret"


def parts(dsn: str) -> dict[str, object]:
    return dict(conninfo_to_dict(read_dsn(dsn).text))


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+asyncpg", "postgresql+psycopg", "postgres+psycopg2"])
def test_the_driver_of_sqlalchemy_is_left_out(scheme):
    assert parts(f"{scheme}://me:{SECRET}@db:5433/shop") == {
        "user": "me",
        "password": SECRET,
        "host": "db",
        "port": "5433",
        "dbname": "shop",
    }


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("prepared_statement_cache_size=0&sslmode=require", {"sslmode": "require"}),
        ("ssl=require", {"sslmode": "require"}),
        ("ssl=true&command_timeout=60", {"sslmode": "require"}),
        ("ssl=verify-full&pool_size=5&max_overflow=2", {"sslmode": "verify-full"}),
        ("host=a:1&host=b:2", {"host": "a,b", "port": "1,2"}),
        ("host=/tmp/sockets&port=5433", {"host": "/tmp/sockets", "port": "5433"}),
        ("user=me@tenant&target_session_attrs=read-write", {"user": "me@tenant", "target_session_attrs": "read-write"}),
        ("options=-c%20statement_timeout%3D5s", {"options": "-c statement_timeout=5s"}),
    ],
)
def test_parameters_of_sqlalchemy_are_left_out_and_those_of_postgresql_are_kept(query, kept):
    assert parts(f"postgresql+asyncpg:///shop?{query}") == {"dbname": "shop", **kept}


def test_a_password_with_a_question_mark_is_read_as_libpq_reads_it():
    assert parts("postgresql+asyncpg://me:a?b@db/shop?ssl=disable")["password"] == "a?b"


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql+asyncpg//me:{SECRET}@db/x",
        f"mysql://me:{SECRET}@db/x",
        f"postgresql://me:{SECRET}%zz@db/x",
        f"postgresql://me:{SECRET}@{SECRET}@db/x",
        f"postgresql://me:{SECRET}/{SECRET}@db/x",
        f"postgresql://me:12/{SECRET}@db/x",
        f"postgresql://me:12/x?{SECRET}&{SECRET}@db/x",
        f"postgresql://me:{SECRET}/x",
        f"postgresql://me:{SECRET}@db/x?{SECRET}=1",
        f"postgresql://me:{SECRET}@db/x?ssl={SECRET}",
        f"postgresql://me:{SECRET}@db:{SECRET}/x",
        f"host=db password={SECRET} {SECRET}",
        f"host=db password=a {SECRET}=b",
        f"host=db password='{SECRET}",
        f"host=db port={SECRET}",
        SECRET,
    ],
)
def test_no_part_of_a_dsn_that_cannot_be_read_is_shown(dsn, caplog):
    caplog.set_level(logging.DEBUG)
    for given in ({"dsn": dsn}, {"dsn": "postgresql:///x", "listen_dsn": dsn}):
        with pytest.raises(ConfigError, match="DSN") as caught:
            _ = Tenure(**given).settings.database
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert SECRET not in caplog.text


def test_an_unknown_scheme_and_an_unknown_parameter_are_named():
    with pytest.raises(ConfigError, match="mysql:// address, but Tenure needs PostgreSQL"):
        read_dsn("mysql://me@db/x")
    with pytest.raises(ConfigError, match="parameter 'nonsense'"):
        read_dsn("postgresql://me@db/x?nonsense=1")


def test_the_direct_way_for_listening_is_read_in_the_same_way():
    assert DatabaseTarget.at("postgresql:///x", listen_dsn="postgresql+asyncpg://me@db/x").listen_dsn == "postgresql://me@db/x"
