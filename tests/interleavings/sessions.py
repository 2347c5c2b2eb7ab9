"""A connection on which a statement is sent without waiting for its answer, and that can be asked later."""

from __future__ import annotations

import select
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from psycopg import pq
from psycopg.conninfo import make_conninfo

Row = tuple[str | None, ...]


class Call(NamedTuple):
    """A statement with its values, as they go over the wire."""

    sql: str
    values: tuple[bytes | None, ...] = ()


@dataclass(frozen=True)
class Reply:
    rows: list[Row]
    touched: int
    fault: str | None = None
    """The SQLSTATE, if the statement failed."""
    words: str = ""


class Session:
    def __init__(self, dsn: str, **settings: str) -> None:
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._wire = pq.PGconn.connect(make_conninfo(dsn, options=options).encode())
        if self._wire.status != pq.ConnStatus.OK:
            raise OSError(self._wire.get_error_message())
        self._wire.nonblocking = 1
        self._wire.enter_pipeline_mode()
        self._prepared: dict[str, bytes] = {}
        self._replies: list[Reply] = []
        self.pid = self._wire.backend_pid
        self.socket = self._wire.socket

    def close(self) -> None:
        self._wire.finish()

    def prepare(self, texts: Iterable[str]) -> None:
        """Ahead of time, so that a step is nothing but its statement."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._prepared]
        for text in fresh:
            name = f"s{len(self._prepared)}".encode()
            self._wire.send_prepare(name, text.encode())
            self._prepared[text] = name
        if fresh:
            self._end()
            for reply in self.wait():
                assert reply.fault is None, reply.words

    def send(self, *calls: Call) -> None:
        for call in calls:
            self._wire.send_query_prepared(self._prepared[call.sql], call.values)
        self._end()

    def answered(self) -> bool:
        """Whether all that was sent has its answer."""
        self._wire.consume_input()
        while not self._wire.is_busy():
            result = self._wire.get_result()
            if result is None:
                continue
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                return True
            self._replies.append(_reply(result))
        return False

    def take(self) -> list[Reply]:
        replies, self._replies = self._replies, []
        return replies

    def wait(self) -> list[Reply]:
        while not self.answered():
            select.select([self.socket], [], [])
        return self.take()

    def run(self, *calls: Call) -> list[Reply]:
        self.prepare(call.sql for call in calls)
        self.send(*calls)
        return self.wait()

    def _end(self) -> None:
        self._wire.pipeline_sync()
        while self._wire.flush():
            select.select([], [self.socket], [])


def _reply(result: pq.PGresult) -> Reply:
    if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        rows = [tuple(_text(result.get_value(row, column)) for column in range(result.nfields)) for row in range(result.ntuples)]
        return Reply(rows, result.command_tuples or 0)
    if result.status == pq.ExecStatus.PIPELINE_ABORTED:
        return Reply([], 0, "aborted")
    state = result.error_field(pq.DiagnosticField.SQLSTATE) or b"?????"
    return Reply([], 0, state.decode(), result.get_error_message())


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
