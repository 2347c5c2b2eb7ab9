"""Runs our statements on a psycopg connection as prepared statements, without a cursor.

A cursor looks up the text and the types of each statement in several caches, renews its state and makes a row maker. That took a
third of the client's CPU for a statement of one job. Here a statement is known by its name. Values and rows are still converted
by the driver. Prepared statements do not work behind a pooler: there, statements run on a cursor.

The driver deallocates all prepared statements of a session, also ours, when it has prepared one itself and then sees a ROLLBACK.
So nothing else on these connections is prepared by a cursor, or the rollback is sent by `send_rollback()`.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

from psycopg import AsyncConnection, Connection, capabilities, errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import execute
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from tenure.periodic import cancellations
from tenure.store.query import Query, Rows, T
from tenure.store.statements import statement

Conversation = Generator[Any, Any, T]
"""What psycopg's `connection.wait()` runs: yields what it waits for, returns the answer."""

MOST = 100
"""Statements of a connection. Each takes memory of the server, and optional values have many combinations of types."""

CROWDED = MOST // 2
"""From here on, a statement that is used again becomes the newest, so that only those are forgotten that are not in use."""

CAN_CLOSE = capabilities.has_send_close_prepared()
"""libpq 17 or newer. A pooler that knows prepared statements by the protocol does not know them in SQL."""

_SUCCESS = ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK

_PARAMETER = re.compile(r"%\((\w+)\)s|%%")


class NumberedStatement(NamedTuple):
    text: bytes
    parameters: tuple[str, ...]
    """The names of $1, $2, ..."""
    formats: tuple[PyFormat, ...]
    """The driver chooses one for each value."""


@cache
def numbered(name: str, schema: str) -> NumberedStatement:
    """The statement as PostgreSQL takes it."""
    numbers: dict[str, int] = {}

    def number(mark: re.Match[str]) -> str:
        return "%" if mark[1] is None else f"${numbers.setdefault(mark[1], len(numbers) + 1)}"

    text = _PARAMETER.sub(number, statement(name, schema)).encode()
    return NumberedStatement(text, tuple(numbers), (PyFormat.AUTO,) * len(numbers))


class PreparedStatements:
    """Those of one connection. One runs at a time."""

    def __init__(self, connection: Connection[Any] | AsyncConnection[Any], schema: str) -> None:
        self._pgconn = connection.pgconn
        self._schema = schema
        self._transformer = Transformer(connection)
        self._prepared: dict[tuple[str, tuple[int, ...]], bytes] = {}
        """The names by which the server knows them. The types of the values belong to a prepared statement."""
        self._tried = 0
        self._cancellations = cancellations if isinstance(connection, AsyncConnection) else lambda: 0

    def run(self, query: Query[T]) -> Conversation[list[T]]:
        text, parameters, formats = numbered(query.name, self._schema)
        given, transformer = query.values, self._transformer
        values = transformer.dump_sequence([given[name] for name in parameters], formats)
        key = query.name, transformer.types or ()
        name = self._prepared.get(key)
        sent_as = transformer.formats
        if name is None:
            name = yield from self._prepare(text, key)
        elif len(self._prepared) >= CROWDED:
            self._prepared[key] = self._prepared.pop(key)
        self._pgconn.send_query_prepared(name, values, param_formats=sent_as, result_format=Format.BINARY)
        result = _checked((yield from execute(self._pgconn)))
        return query.decode(self._rows(result), lambda: _columns(result))

    def _prepare(self, text: bytes, key: tuple[str, tuple[int, ...]]) -> Conversation[bytes]:
        if len(self._prepared) >= MOST:
            yield from self._forget_oldest()
        self._tried += 1
        name, canceled_before = _name_of(text, key[1], self._tried), self._cancellations()
        self._pgconn.send_prepare(name, text, param_types=key[1])
        _checked((yield from execute(self._pgconn)))
        self._prepared[key] = name
        if self._cancellations() > canceled_before:
            # The driver cancels what the server is doing and lets us continue. That came too late for the preparation, and the
            # statement is not sent any more: nothing would cancel it.
            raise errors.QueryCanceled("canceled before the statement was sent")
        return name

    def _forget_oldest(self) -> Conversation[None]:
        # Before the answer: a cancellation may come when the server has already done it.
        name = self._prepared.pop(next(iter(self._prepared)))
        if CAN_CLOSE:
            self._pgconn.send_close_prepared(name)
        else:
            self._pgconn.send_query(b"deallocate " + name)
        _checked((yield from execute(self._pgconn)))

    def _rows(self, result: PGresult) -> Rows:
        if not result.ntuples:
            return []
        self._transformer.set_pgresult(result)
        rows = self._transformer.load_rows(0, result.ntuples, tuple)
        self._transformer.set_pgresult(None)  # it would keep the answer until the next one that has rows
        return rows


def send_rollback(connection: AsyncConnection[Any]) -> Conversation[None]:
    connection.pgconn.send_query(b"rollback")
    _checked((yield from execute(connection.pgconn)))


def _name_of(text: bytes, types: tuple[int, ...], number: int) -> bytes:
    """Behind a pooler that was not declared, clients meet on a session of the server: equal names must then be equal statements.
    The number, because a preparation that was canceled may have been done: the same name would be refused."""
    digest = blake2b(text + repr(types).encode(), digest_size=12).hexdigest()
    return f"tenure_{digest}_{number}".encode()


def _checked(results: list[PGresult]) -> PGresult:
    for result in results:
        if result.status not in _SUCCESS:
            raise errors.error_from_result(result)
    if len(results) != 1:
        raise errors.OperationalError(f"{len(results)} results of one statement: the state of the connection is not known")
    return results[0]


def _columns(result: PGresult) -> list[str]:
    return [(result.fname(number) or b"").decode() for number in range(result.nfields)]
