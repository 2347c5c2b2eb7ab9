"""A way to PostgreSQL that can be cut, silenced, slowed, or cut at the worst moment: when only the answer is left."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal

from psycopg.conninfo import conninfo_to_dict, make_conninfo

CHUNK = 1 << 20

Parts = dict[str, str | int | None]
Moment = Literal["before", "during", "after"]
"""Of a statement, from the server's view: it never heard of it; it was told, and nobody listens; it answered in vain."""


class Wire:
    """Passes everything on, until told otherwise."""

    def __init__(self, server_dsn: str) -> None:
        self._server = conninfo_to_dict(server_dsn)
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._trap: _Trap | None = None
        self.latency = 0.0
        self.speaks = asyncio.Event()
        self.speaks.set()
        self.dsn = ""
        self.cuts = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """Gives the DSN that leads through here."""
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        self.dsn = _redirected(self._server, port)
        try:
            yield self.dsn
        finally:
            listener.close()
            self.cut()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> int:
        """All connections, at once and without a goodbye."""
        links = list(self._links)
        for link in links:
            link.sever()
        return len(links)

    async def hush(self, seconds: float) -> int:
        """Nothing gets through for a while, nobody is told; then the connections break."""
        self.speaks.clear()
        try:
            await asyncio.sleep(seconds)
        finally:
            self.speaks.set()
        return self.cut()

    async def slow_down(self, latency: float, seconds: float) -> None:
        self.latency = latency
        try:
            await asyncio.sleep(seconds)
        finally:
            self.latency = 0.0

    def lose_answer(self, role: str | None = None, when_seen: bytes = b"", moment: Moment = "after") -> asyncio.Future[None]:
        """Once, on the connection of a role or of anybody: its next statement, or the next answer that holds these bytes.
        The result is there when it has happened."""
        self._trap = _Trap(b"" if role is None else f"tenure {role}\0".encode(), when_seen, moment)
        return self._trap.sprung

    def spare(self) -> None:
        """Takes back what `lose_answer` asked for."""
        self._trap = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            up_reader, up_writer = await _connect(self._server)
        except OSError:
            writer.close()
            return
        link = _Link(self, reader, writer, up_reader, up_writer)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    def trapped(self, link: _Link, moment: Moment, data: bytes) -> bool:
        trap = self._trap
        if trap is None or trap.moment != moment or trap.role not in link.hello or trap.wanted not in data:
            return False
        self._trap = None
        self.cuts += 1
        if not trap.sprung.done():
            trap.sprung.set_result(None)
        return True


class _Trap:
    def __init__(self, role: bytes, wanted: bytes, moment: Moment) -> None:
        self.role, self.wanted, self.moment = role, wanted, moment
        self.sprung: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class _Link:
    """One connection of a client, and ours to the server for it."""

    def __init__(
        self,
        wire: Wire,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
    ) -> None:
        self._wire = wire
        self._down = reader, writer
        self._up = up_reader, up_writer
        self.hello = b""
        self._greeted = False

    async def run(self) -> None:
        ways = [asyncio.create_task(self._requests()), asyncio.create_task(self._answers())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self.sever()

    def sever(self) -> None:
        for _, writer in (self._down, self._up):
            writer.transport.abort()

    async def _requests(self) -> None:
        reader, writer = self._down[0], self._up[1]
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                self.hello = self.hello or data
                await self._hold()
                if self._greeted and self._wire.trapped(self, "before", data):
                    return
                writer.write(data)
                await writer.drain()
                if self._greeted and self._wire.trapped(self, "during", data):
                    return

    async def _answers(self) -> None:
        reader, writer = self._up[0], self._down[1]
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._hold()
                if self._greeted and self._wire.trapped(self, "after", data):
                    return
                # ReadyForQuery ends the greeting: from here on, what goes up is work.
                self._greeted = self._greeted or b"Z\x00\x00\x00\x05" in data
                writer.write(data)
                await writer.drain()

    async def _hold(self) -> None:
        if self._wire.latency:
            await asyncio.sleep(self._wire.latency)
        await self._wire.speaks.wait()


async def _connect(server: Parts) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = str(server.get("hostaddr") or server.get("host") or "localhost"), int(str(server.get("port") or 5432))
    if host.startswith("/"):
        return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
    reader, writer = await asyncio.open_connection(host, port)
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return reader, writer


def _redirected(server: Parts, port: int) -> str:
    parts: Parts = {**server, "port": port, "hostaddr": "127.0.0.1"}
    if str(server.get("host") or "/").startswith("/"):
        parts |= {"host": "127.0.0.1", "sslmode": "disable", "gssencmode": "disable"}
    return make_conninfo("", **parts)
