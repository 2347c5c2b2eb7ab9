"""A way to PostgreSQL that can be cut at the worst moment: when the server has done its work and only the answer is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class WireCutter:
    """Passes everything on, until it is told to lose an answer to the connection of one role."""

    def __init__(self, server_dsn: str) -> None:
        self._server = conninfo_to_dict(server_dsn)
        self._links: set[asyncio.Task[None]] = set()
        self._role: bytes | None = None
        self._wanted = b""
        self.cuts = 0

    def lose_answer(self, role: str, when_seen: bytes) -> None:
        """The next answer to `role` that holds these bytes is swallowed, and its connection closed."""
        self._role, self._wanted = f"tenure {role}".encode(), when_seen

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        try:
            yield make_conninfo(
                "", **{**self._server, "host": "127.0.0.1", "port": port, "sslmode": "disable", "gssencmode": "disable"}
            )
        finally:
            listener.close()
            for link in self._links:
                link.cancel()
            await asyncio.gather(*self._links, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        with suppress(asyncio.CancelledError, ConnectionError):
            await self._join(reader, writer)
        self._links.discard(task)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = f"{self._server['host']}/.s.PGSQL.{self._server['port']}"
        up_reader, up_writer = await asyncio.open_unix_connection(path)
        hello = await reader.read(65536)
        up_writer.write(hello)
        up = asyncio.create_task(self._pass(reader, up_writer))
        try:
            while data := await up_reader.read(1 << 20):
                if self._role is not None and self._role in hello and self._wanted in data:
                    self._role = None
                    self.cuts += 1
                    return
                writer.write(data)
        finally:
            up.cancel()
            writer.close()
            up_writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 20):
                writer.write(data)
            writer.close()
