"""HTTP/1.1 of uvicorn, which waits for ever for a request that has begun. Connections that send nothing, or a byte now and then,
would add up until no one else is let in."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from tenure.web.reader_deadline import ReaderDeadline

HEAD_WITHIN = 10.0
"""Seconds for the head of a request. For its body there is a time of its own."""


class WebSocketProtocol(ReaderDeadline, WebSocketsSansIOProtocol):
    pass


class HttpProtocol(ReaderDeadline, H11Protocol):
    """Of this implementation, because it also bounds the size of a head."""

    _expiry: asyncio.TimerHandle | None = None

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.ws_protocol_class = WebSocketProtocol

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        _send_at_once(transport)
        transport.set_write_buffer_limits(high=0)  # writing pauses whenever the client has not taken everything
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_expiry()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """The transport does not tell its next protocol that writing is paused."""
        super().handle_websocket_upgrade(event)
        if self.flow.write_paused:
            self._stop_waiting()
            next_protocol = self.transport.get_protocol()
            assert isinstance(next_protocol, WebSocketProtocol)
            next_protocol.pause_writing()

    def _expect_request(self) -> None:
        """While none is being answered. More data does not extend the time; between requests, uvicorn's keep-alive applies."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel_expiry()
        elif self._expiry is None and self.transport.get_protocol() is self:
            self._expiry = self.loop.call_later(HEAD_WITHIN, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        if self.transport.get_protocol() is self:  # and not that of a WebSocket
            self.transport.close()

    def _cancel_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None


def _send_at_once(transport: asyncio.Transport) -> None:
    """A head and its body are two writes. Without this the body waits until the client has acknowledged the head, which clients
    put off for 40 ms. asyncio sets it only for sockets that name their protocol, which those of `socket.create_server` do not."""
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
