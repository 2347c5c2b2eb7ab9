"""A real uvicorn on a free port of loopback, in the event loop of the test."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import uvicorn
from websockets.asyncio.client import ClientConnection, connect

from tenure import Tenure
from tenure.web import create_token
from tenure.web.http_protocol import HttpProtocol
from tenure.web.web_app import WebApp
from tenure.web.web_options import WebOptions
from tests.planted_secrets import planted_token
from tests.waiting import until


class Server:
    def __init__(self, asgi: Any, stack: AsyncExitStack) -> None:
        self._asgi = asgi
        self._stack = stack

    async def start(self, port: int = 0, *, most_connections: int | None = None) -> Server:
        listening = socket.create_server(("127.0.0.1", port))
        self.port = listening.getsockname()[1]
        config = uvicorn.Config(
            self._asgi, http=HttpProtocol, log_config=None, access_log=False, lifespan="on", ws_max_size=65536,
            timeout_graceful_shutdown=2, limit_concurrency=most_connections,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._server.install_signal_handlers = lambda: None
        self._task = asyncio.create_task(self._server.serve([listening]))
        await until(lambda: self._server.started)
        return self

    async def stop(self) -> None:
        self._server.should_exit = True
        await self._task

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def client(self, token: str | None = None, **headers: str) -> httpx2.AsyncClient:
        given = {**headers, **({"authorization": f"Bearer {token}"} if token else {})}
        # All of it is plain HTTP: reading the certificates of the world takes longer than most of these tests.
        client = httpx2.AsyncClient(base_url=f"{self.url}/_api", headers=given, timeout=30, trust_env=False, verify=False)
        return await self._stack.enter_async_context(client)

    async def live(self, token: str | None = None, *, path: str = "/_api/live", **options: Any) -> Live:
        socket_ = await self._stack.enter_async_context(connect(f"ws://127.0.0.1:{self.port}{path}", proxy=None, **options))
        live = Live(socket_)
        if token is not None:
            await live.send(type="auth", token=token)
            await live.until(lambda message: message["type"] == "ready")
        return live


class Live:
    """A client of /_api/live."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.seen: list[dict[str, Any]] = []

    async def send(self, **message: Any) -> None:
        await self.connection.send(json.dumps(message))

    async def receive(self, within: float = 20) -> dict[str, Any]:
        async with asyncio.timeout(within):
            message = json.loads(await self.connection.recv())
        self.seen.append(message)
        return message

    async def until(self, fits: Any, within: float = 20) -> dict[str, Any]:
        async with asyncio.timeout(within):
            while not fits(message := await self.receive(within)):
                pass
        return message


def asking_from(address: str, web: WebApp) -> Any:
    """The app as it sees connections from this address."""

    async def moved(scope: Any, receive: Any, send: Any) -> None:
        await web({**scope, "client": (address, 1)} if "client" in scope else scope, receive, send)

    return moved


class Serving:
    def __init__(self, app: Tenure) -> None:
        self.app = app
        self.stack = AsyncExitStack()

    async def serve(self, asgi: Any = None, /, *, app: Tenure | None = None, **options: Any) -> Server:
        """The web app with these options, or another ASGI app."""
        server = await Server(asgi or WebApp(app or self.app, WebOptions(**options)), self.stack).start()
        self.stack.push_async_callback(server.stop)
        return server

    async def token(self, scope: str = "admin", name: str = "tests", **options: Any) -> str:
        return planted_token((await create_token(self.app, name, scope, **{"rate": 0, **options})).token)

    async def admin(self, **options: Any) -> httpx2.AsyncClient:
        """A client that may do everything."""
        return await (await self.serve(**options)).client(await self.token())

    async def close(self) -> None:
        await self.stack.aclose()
