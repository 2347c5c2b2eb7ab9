"""A proxy in front of PostgreSQL that can be cut, silenced or slowed, or lose the answer to a statement."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal

from psycopg.conninfo import conninfo_to_dict, make_conninfo

CHUNK = 1 << 20
_WITHOUT_LINGERING = struct.pack("ii", 1, 0)  # TCP then ends a connection with a reset

Parts = dict[str, str | int | None]
Moment = Literal["before", "during", "after"]
"""When a connection breaks, as the server sees it: before it receives a statement, while it executes it, or after it has sent the
answer."""


class Proxy:
    """Forwards everything, until a method changes that."""

    def __init__(self, server_dsn: str) -> None:
        self._server = conninfo_to_dict(server_dsn)
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._trap: _Trap | None = None
        self.latency = 0.0
        self.speaks = asyncio.Event()
        """Cleared: nothing is forwarded."""
        self.speaks.set()
        self.dsn = ""
        self.cuts = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """Returns the DSN of the proxy."""
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
        """Aborts all connections, and returns how many there were."""
        links = list(self._links)
        for link in links:
            link.abort()
        return len(links)

    def reset(self, after: bytes = b"") -> int:
        """Like `cut`, by a TCP reset. Right after these bytes: a client finds both when it looks at its socket."""
        links = list(self._links)
        for link in links:
            link.reset(after)
        return len(links)

    async def silence(self, seconds: float) -> int:
        """Forwards nothing for some seconds, without closing a connection; then all connections break."""
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
        """Breaks one connection, of a role or of any: at its next statement, or at the next answer that contains these bytes.
        The future is done when that has happened."""
        self._trap = _Trap(b"" if role is None else f"tenure {role}\0".encode(), when_seen, moment)
        return self._trap.done

    def keep_answers(self) -> None:
        """Cancels `lose_answer`."""
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
        if trap is None or trap.moment != moment or trap.role not in link.startup or trap.wanted not in data:
            return False
        self._trap = None
        self.cuts += 1
        if not trap.done.done():
            trap.done.set_result(None)
        return True


class _Trap:
    def __init__(self, role: bytes, wanted: bytes, moment: Moment) -> None:
        self.role, self.wanted, self.moment = role, wanted, moment
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class _Link:
    """A client's connection, and the connection to the server for it."""

    def __init__(
        self,
        proxy: Proxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._down = reader, writer
        self._up = up_reader, up_writer
        self.startup = b""
        self._ready = False

    async def run(self) -> None:
        directions = [asyncio.create_task(self._requests()), asyncio.create_task(self._answers())]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            self.abort()

    def abort(self) -> None:
        for _, writer in (self._down, self._up):
            writer.transport.abort()

    def reset(self, after: bytes) -> None:
        writer = self._down[1]
        writer.write(after)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _WITHOUT_LINGERING)
        self.abort()

    async def _requests(self) -> None:
        reader, writer = self._down[0], self._up[1]
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                self.startup = self.startup or data
                await self._hold()
                if self._ready and self._proxy.trapped(self, "before", data):
                    return
                writer.write(data)
                await writer.drain()
                if self._ready and self._proxy.trapped(self, "during", data):
                    return

    async def _answers(self) -> None:
        reader, writer = self._up[0], self._down[1]
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._hold()
                if self._ready and self._proxy.trapped(self, "after", data):
                    return
                # ReadyForQuery ends the startup: from here on, clients send statements.
                self._ready = self._ready or b"Z\x00\x00\x00\x05" in data
                writer.write(data)
                await writer.drain()

    async def _hold(self) -> None:
        if self._proxy.latency:
            await asyncio.sleep(self._proxy.latency)
        await self._proxy.speaks.wait()


async def _connect(server: Parts) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = str(server.get("hostaddr") or server.get("host") or "localhost"), int(str(server.get("port") or 5432))
    if host.startswith("/"):
        return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
    reader, writer = await asyncio.open_connection(host, port)
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return reader, writer


def _redirected(server: Parts, port: int) -> str:
    # Statements can be read only without encryption. `allow` does without where the server permits it, and skips the request for
    # TLS, which would be taken for the startup packet.
    parts: Parts = {"sslmode": "allow", "gssencmode": "disable", **server, "port": port, "hostaddr": "127.0.0.1"}
    if str(server.get("host") or "/").startswith("/"):
        parts |= {"host": "127.0.0.1", "sslmode": "disable", "gssencmode": "disable"}
    return make_conninfo("", **parts)
