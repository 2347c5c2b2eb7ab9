"""Receives notifications on a connection that also runs statements.

During a statement the driver reads the socket and passes notifications on. Between statements the event loop watches the
socket for us: `pause()` ends that before each statement, `watch()` begins it again afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import AsyncConnection, Notify


class NotificationReader:
    def __init__(self, connection: AsyncConnection[Any], received: Callable[[str], None], broken: Callable[[], None]) -> None:
        """`received(payload)` is called for each notification, `broken()` when an idle connection is found closed."""
        self._pgconn = connection.pgconn
        self._received = received
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._socket = self._pgconn.socket
        self._is_encrypted = _may_be_encrypted(connection)
        self._open = True
        connection.add_notify_handler(self._on_notify)

    def watch(self) -> None:
        """To be called when no statement is running."""
        # Data that libpq, or TLS below it, has already read does not make the socket readable again.
        if self._is_encrypted:
            self._read()
        else:
            self._pass_on()
        if self._open:
            try:
                self._loop.add_reader(self._socket, self._read)
            except (RuntimeError, OSError, ValueError):  # the socket is closed, or has an error
                self.close()
                self._broken()

    def pause(self) -> None:
        """To be called before a statement: the driver may close the socket. And when a connection is reset, uvloop closes the
        watcher of its socket. Until that watcher is removed, it refuses to watch the same file descriptor again."""
        if self._open:
            self._loop.remove_reader(self._socket)

    def close(self) -> None:
        """Must be called before the connection is closed: the next file that is opened may get the same descriptor."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._socket)

    def _on_notify(self, notify: Notify) -> None:
        self._received(notify.payload)

    def _read(self) -> None:
        try:
            self._pgconn.consume_input()
            while self._pass_on():
                self._pgconn.consume_input()
        except psycopg.Error:
            self.close()
            self._broken()

    def _pass_on(self) -> bool:
        """Whether there was any."""
        found = False
        while note := self._pgconn.notifies():
            found = True
            self._received(note.extra.decode("utf-8", "replace"))
        return found


def _may_be_encrypted(connection: AsyncConnection[Any]) -> bool:
    try:
        return connection.pgconn.ssl_in_use or connection.pgconn.used_gssapi
    except psycopg.NotSupportedError:  # libpq 15 or older does not tell it
        return True
