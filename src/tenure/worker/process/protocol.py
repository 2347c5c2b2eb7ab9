"""How a process and one that it started exchange messages: one JSON object a line, over a socket pair."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from typing import Any

Message = dict[str, Any]


LONGEST_LINE = 16 << 20  # a job's largest input or output, escaped


def decode(line: bytes) -> Message | None:
    """None for a line that was cut off: the other side is gone."""
    return json.loads(line) if line.endswith(b"\n") else None


class UnknownMessage(Exception):  # noqa: N818 - reads as the fact it states
    """Not a message of the protocol: the handler may have written to the connection."""


def encode(sent: Any) -> bytes:
    """`sent` is a NamedTuple. Its name and its fields are sent; fields that are dataclasses as dicts."""
    fields = {
        name: asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        for name, value in sent._asdict().items()
    }
    return json.dumps({"type": type(sent).__name__, **fields}).encode() + b"\n"


def from_message(message: Message, types: Mapping[str, Any]) -> Any:
    """The NamedTuple that `encode()` was given. `types` are those of the protocol, by name."""
    try:
        fields = dict(message)
        return types[fields.pop("type")](**fields)
    except (KeyError, TypeError, ValueError):
        # Its values may be the job's data, and this text is logged.
        names = ", ".join(map(str, message)) if isinstance(message, dict) else ""
        raise UnknownMessage(f"it sent a message that is not understood: {names or 'nothing'}") from None


class MessageStream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @staticmethod
    async def over(end: socket.socket) -> MessageStream:
        return MessageStream(*await asyncio.open_unix_connection(sock=end, limit=LONGEST_LINE))

    def send(self, sent: Any) -> None:
        """Never waits: messages are small, and the other side may be busy or gone."""
        if not self._writer.is_closing():
            self._writer.write(encode(sent))

    async def drained(self) -> None:
        with suppress(ConnectionError):
            await self._writer.drain()

    async def messages(self) -> AsyncIterator[Message]:
        """Until the other side is gone."""
        while True:
            try:
                line = await self._reader.readline()
            except (ConnectionError, ValueError):
                return
            if (message := decode(line)) is None:
                return
            yield message

    def end(self) -> None:
        """Readers see the end of the stream."""
        if not self._reader.at_eof():
            self._reader.feed_eof()

    def close(self) -> None:
        self._writer.close()
