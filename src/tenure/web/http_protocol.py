"""HTTP/1.1 of uvicorn, which waits without a limit for a request that has begun. Connections that send nothing, or a byte now and
then, would add up until the server accepts no others."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from typing import Any

import h11
from starlette.responses import Response
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from tenure.web.problems import Problem
from tenure.web.reader_deadline import ReaderDeadline
from tenure.web.security.headers import add_headers

log = logging.getLogger("tenure")

HEAD_WITHIN = 10.0
"""Seconds for the head of a request. For its body there is a time of its own."""


class WebSocketProtocol(ReaderDeadline, WebSocketsSansIOProtocol):
    def handle_ping(self) -> None:
        """Its answer is sent at once, also while writing is paused. Until the client takes it, nothing more is read."""
        super().handle_ping()
        if not self.writable.is_set():
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()


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
        self._most, self.limit_concurrency = self.limit_concurrency, None  # uvicorn refuses in plain text
        self._served, self.app = self.app, self._serve

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
        """The transport does not notify its next protocol that writing is paused, and uvicorn neither answers nor ends a
        handshake that its parser refuses: one with a body, or with more headers than the parser reads."""
        super().handle_websocket_upgrade(event)
        next_protocol = self.transport.get_protocol()
        assert isinstance(next_protocol, WebSocketProtocol)
        if self.flow.write_paused:
            self._stop_waiting()
            next_protocol.pause_writing()
        if not next_protocol.handshake_initiated:
            self.send_400_response("")

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        app: Any = self._served
        if self._is_full():
            log.warning("request refused", extra={"reason": "too-many-connections", "most": self._most})
            app = _refusal(_too_many_connections())
        elif _has_two_lengths(scope["headers"]):
            log.warning("request refused", extra={"reason": "two-lengths", "address": scope["client"] and scope["client"][0]})
            app = _refusal(_two_lengths())
        await app(scope, receive, send)

    def _is_full(self) -> bool:
        return self._most is not None and max(len(self.connections), len(self.tasks)) > self._most

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """As uvicorn does, but with a problem document and our headers. The parser has failed: no more is read."""
        if self.conn.our_state is h11.SEND_RESPONSE or self.conn.our_state is h11.IDLE:
            response = _refusal(_malformed())
            head = h11.Response(status_code=response.status_code, headers=response.raw_headers, reason=b"Bad Request")
            for event in (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

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


def _refusal(problem: Problem) -> Response:
    """After which the connection is closed."""
    response = add_headers(problem.response())
    response.headers["Connection"] = "close"
    return response


def _too_many_connections() -> Problem:
    detail = "the server has as many connections as it can serve: try again later"
    return Problem(503, "too-many-connections", detail, headers={"Retry-After": "1"})


def _has_two_lengths(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """A proxy may go by the other one. What it takes for the body of this request would then be answered as another request."""
    return {b"content-length", b"transfer-encoding"} <= {name for name, _ in headers}


def _two_lengths() -> Problem:
    return Problem(400, "malformed", "the request has both Content-Length and Transfer-Encoding: send one of them")


def _malformed() -> Problem:
    return Problem(400, "malformed", "this is not a request of HTTP/1.1, or its head is too large: send a valid one")


def _send_at_once(transport: asyncio.Transport) -> None:
    """A head and its body are two writes. Without this the body waits until the client has acknowledged the head, which clients
    put off for 40 ms. asyncio sets it only for sockets that name their protocol, which those of `socket.create_server` do not."""
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
