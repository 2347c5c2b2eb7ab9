"""The WebSocket `/_api/live`: subscribe to jobs, chains, workflows, queues and the overview.

The origin is checked before the connection is accepted. A token comes in the Authorization header or as the first message within
five seconds, never in the address, which is logged. Nothing is sent before.

    -> {"type": "auth", "token": "tnr_..."}                                  unless a header or cookie identifies you
    <- {"type": "ready", "name": "...", "scope": "read"}
    -> {"type": "subscribe", "topics": ["job:<id>", "overview"], "versions": {"job:<id>": "<version that was seen>"}}
    <- {"type": "job", "topic": "job:<id>", "version": "...", "job": {...}}
    -> {"type": "unsubscribe", "topics": [...]}      -> {"type": "ping"}     <- {"type": "pong"}
    <- {"type": "gone", "topic": "job:<id>"}         <- {"type": "error", "problem": {...}, "topic": "..." if it is about one}

The connection ends with 4429 when its client asks for too much: the last error has the seconds to wait, as `retry_after`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tenure.model.names import size_in_bytes
from tenure.web.live.followed import Viewer
from tenure.web.live.hub import MOST_ACCOUNT_TOPICS, MOST_TOPICS
from tenure.web.live.topics import LiveTopic
from tenure.web.problems import Problem, internal_error, of_error
from tenure.web.security.authentication import RECHECK, address_of
from tenure.web.security.hosts import check_host
from tenure.web.security.origins import check_origin
from tenure.web.security.principal import Principal, Scope
from tenure.web.services import WebServices

log = logging.getLogger("tenure")

AUTH_WITHIN = 5.0  # seconds for the first message
SEND_WITHIN = 30.0  # seconds for a client to take a message
LARGEST_MESSAGE = 64 * 1024  # bytes
LONGEST_ECHO = 300  # bytes of a refused topic in the answer: more than a valid one can have
MESSAGES_PER_SECOND = 20
ACCOUNT_MESSAGES_PER_SECOND = 100  # of all connections of one principal
TOPICS_PER_SECOND = 1000  # that they may subscribe to, besides as many as they may follow at once; the same to unsubscribe from
MOST_UNSENT = 3 * MOST_TOPICS  # messages for a client that does not take them, before nothing more is read from it
MOST_UNSENT_CHARACTERS = 1024 * 1024  # the same for their size; the answers to one message may come on top
UNAUTHORIZED, FORBIDDEN, TOO_MANY = 4401, 4403, 4429
INVALID, TOO_LARGE, GOING_AWAY, FAILED = 1007, 1009, 1001, 1011
CODES = {401: UNAUTHORIZED, 403: FORBIDDEN, 413: TOO_LARGE, 421: FORBIDDEN, 422: INVALID, 429: TOO_MANY}
"""By the status of a problem; of others, FAILED."""


class LiveSocket:
    """One connection."""

    def __init__(self, socket: WebSocket, services: WebServices) -> None:
        self._socket = socket
        self._services = services
        self._token: str | None = None

    async def run(self) -> None:
        try:
            check_host(self._socket, self._services.options.allowed_hosts)
            check_origin(self._socket, self._services.options.allowed_origins)
            self._services.authenticator.check_address(self._socket)
            principal = await self._principal()
            if principal is None:
                return
            principal.require(Scope.READ)
            with self._services.live.viewing(principal) as viewer:
                await self._send({"type": "ready", "name": principal.name, "scope": principal.scope.value})
                await self._serve(viewer)
        except Exception as error:  # noqa: BLE001 - one connection must not end others
            await self._fail(error)

    async def _principal(self) -> Principal | None:
        principal = await self._services.authenticator.find(self._socket)
        if principal is not None:
            await self._socket.accept()
            return principal
        address = address_of(self._socket)
        with self._services.pending_sockets.entered(address):
            await self._socket.accept()
            return await self._by_first_message(address)

    async def _by_first_message(self, address: str) -> Principal | None:
        try:
            async with asyncio.timeout(AUTH_WITHIN):
                message = await self._receive()
        except TimeoutError:
            raise Problem(401, "unauthorized", "no token within 5 s: send it as the first message") from None
        if message is None:
            return None
        token = message.get("token")
        if message.get("type") != "auth" or not isinstance(token, str):
            raise Problem(401, "unauthorized", 'the first message has no token: send {"type": "auth", "token": "..."}')
        self._token = token
        return await self._services.authenticator.of_token(token, address)

    async def _serve(self, viewer: Viewer) -> None:
        tasks = [asyncio.create_task(work(viewer)) for work in (self._read, self._write, self._recheck)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, WebSocketDisconnect):
                raise outcome

    async def _read(self, viewer: Viewer) -> None:
        limiter = self._services.limiter
        while (message := await self._receive()) is not None:
            await viewer.outbox.room(MOST_UNSENT, MOST_UNSENT_CHARACTERS)
            limiter.check(f"socket {id(viewer)}", MESSAGES_PER_SECOND, 5 * MESSAGES_PER_SECOND)
            if viewer.principal.via != "local":
                self._check_account(viewer.principal.account, message)
            try:
                self._handle(viewer, message)
            except Problem as problem:
                viewer.outbox.put(f"error {len(viewer.topics)}", json.dumps({"type": "error", "problem": problem.document()}))

    def _check_account(self, account: str, message: dict[str, Any]) -> None:
        """Ends the connection. Answers for each topic would use more memory than what they refuse."""
        limiter, kind, given = self._services.limiter, message.get("type"), message.get("topics")
        limiter.check(f"messages {account}", ACCOUNT_MESSAGES_PER_SECOND, 5 * ACCOUNT_MESSAGES_PER_SECOND)
        if kind in ("subscribe", "unsubscribe") and isinstance(given, list):
            for _ in given[:MOST_TOPICS]:
                limiter.check(f"{kind} {account}", TOPICS_PER_SECOND, MOST_ACCOUNT_TOPICS)

    def _handle(self, viewer: Viewer, message: dict[str, Any]) -> None:
        match message.get("type"):
            case "ping":
                viewer.outbox.put("pong", '{"type":"pong"}')
            case "subscribe":
                versions = message.get("versions")
                for given in _topics(message):
                    self._subscribe(viewer, given, versions if isinstance(versions, dict) else {})
            case "unsubscribe":
                for given in _topics(message):
                    with _answered(viewer, given):
                        self._services.live.unsubscribe(viewer, LiveTopic.parse(given))
            case "auth":
                pass  # a client with a token cannot know that a cookie, a header or its address has identified it already
            case _:
                raise Problem(422, "unknown-message", "the type of the message is not known: use subscribe, unsubscribe or ping")

    def _subscribe(self, viewer: Viewer, given: Any, versions: dict[str, Any]) -> None:
        with _answered(viewer, given):
            topic = LiveTopic.parse(given)
            seen = versions.get(str(topic))
            self._services.live.subscribe(viewer, topic, seen if isinstance(seen, str) else None)

    async def _write(self, viewer: Viewer) -> None:
        while (text := await viewer.outbox.take()) is not None:
            async with asyncio.timeout(SEND_WITHIN):
                await self._socket.send_text(text)
        await self._close(GOING_AWAY, "the server stops")

    async def _recheck(self, viewer: Viewer) -> None:
        """A connection ends when its token is revoked or expires."""
        while True:
            await asyncio.sleep(RECHECK)
            if not await self._services.authenticator.still_valid(self._socket, viewer.principal, self._token):
                raise Problem(401, "unauthorized", "the token is no longer valid: connect again with another one")

    async def _receive(self) -> dict[str, Any] | None:
        """None: the client is gone."""
        received = await self._socket.receive()
        if received["type"] == "websocket.disconnect":
            return None
        text = received.get("text")
        data = received.get("bytes")
        if len(text or data or "") > LARGEST_MESSAGE:
            raise Problem(413, "too-large", f"the message has more than {LARGEST_MESSAGE} bytes: send several smaller ones")
        try:
            message = json.loads(text if text is not None else "")
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise Problem(422, "unknown-message", "the message is not a JSON object: send one as text")
        return message

    async def _send(self, message: dict[str, Any]) -> None:
        async with asyncio.timeout(SEND_WITHIN):
            await self._socket.send_text(json.dumps(message))

    async def _fail(self, error: Exception) -> None:
        if isinstance(error, WebSocketDisconnect | TimeoutError | OSError):
            problem = Problem(408, "timeout", "the client did not take its messages in time: connect again")
        else:
            problem = of_error(error) or internal_error()
            if problem.status == 500:
                log.error("live connection failed", exc_info=error)
        with suppress(Exception):
            if self._socket.client_state is WebSocketState.CONNECTED and problem.status != 408:
                await self._send({"type": "error", "problem": problem.document(), **_when_to_retry(problem)})
        await self._close(CODES.get(problem.status, FAILED), problem.slug)

    async def _close(self, code: int, reason: str) -> None:
        """Before it was accepted, this answers the handshake with 403."""
        with suppress(Exception):
            await self._socket.close(code, reason)


def _topics(message: dict[str, Any]) -> list[Any]:
    given = message.get("topics")
    if not isinstance(given, list) or len(given) > MOST_TOPICS:
        raise Problem(422, "unknown-message", f"topics must be a list of at most {MOST_TOPICS}: send several messages")
    return given


@contextmanager
def _answered(viewer: Viewer, given: Any) -> Iterator[None]:
    """A topic that is refused does not prevent the others. The answer has it as given, so that the client recognizes it."""
    try:
        yield
    except Problem as problem:
        topic = _shortened(str(given))
        viewer.outbox.put(f"refused {topic}", json.dumps({"type": "error", "topic": topic, "problem": problem.document()}))


def _shortened(topic: str) -> str:
    return (
        topic if size_in_bytes(topic) <= LONGEST_ECHO else topic.encode(errors="replace")[:LONGEST_ECHO].decode(errors="ignore")
    )


def _when_to_retry(problem: Problem) -> dict[str, int]:
    """In seconds, as the header of an answer has it."""
    seconds = (problem.headers or {}).get("Retry-After")
    return {} if seconds is None else {"retry_after": int(seconds)}


def live_endpoint(services: Callable[[], WebServices]) -> Callable[[WebSocket], Any]:
    async def live(socket: WebSocket) -> None:
        await LiveSocket(socket, services()).run()

    return live
