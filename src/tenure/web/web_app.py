"""The ASGI app: mountable under any path, started by its first request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Match, Route, Router, WebSocketRoute

from tenure.web.live.websocket import live_endpoint
from tenure.web.pipeline import Endpoint
from tenure.web.problems import Problem
from tenure.web.route_table import ROUTES
from tenure.web.security.headers import LARGEST_HEAD, add_headers, size_of_head
from tenure.web.security.hosts import check_host
from tenure.web.security.origins import PREFLIGHT, cors_headers
from tenure.web.security.secret_names import SECRET_NAMES
from tenure.web.services import WebServices
from tenure.web.static_files import PAGE, static_response
from tenure.web.web_options import Authorize, WebOptions

if TYPE_CHECKING:
    from tenure.app import Tenure

LONGEST_METHOD = 20  # characters that are repeated in an answer

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class _AnyMethod:
    """Of a function, Starlette serves GET only, or the methods of a list; it answers all others itself, in plain text."""

    def __init__(self, respond: Callable[[Request], Response]) -> None:
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._respond(Request(scope))(scope, receive, send)


class WebApp:
    """An ASGI application. Its connections belong to the event loop that serves it, and are opened by the first request."""

    def __init__(self, app: Tenure, options: WebOptions) -> None:
        self._app = app
        self.options = options
        self._services: dict[asyncio.AbstractEventLoop, WebServices] = {}
        routes = [Route(f"/_api{one.path}", Endpoint(one, self.services).respond, methods=[one.method]) for one in ROUTES]
        routes += [Route("/static/{name:path}", self._static, methods=["GET"]), Route("/", self._dashboard, methods=["GET"])]
        self._routes = routes
        others = [Route(path, _AnyMethod(self._wrong_method)) for path in dict.fromkeys(route.path for route in routes)]
        self._router = Router(
            [*routes, *others, WebSocketRoute("/_api/live", live_endpoint(self.services))],
            redirect_slashes=False,
            default=self._not_found,
        )

    def services(self) -> WebServices:
        """Those of the running event loop."""
        loop = asyncio.get_running_loop()
        services = self._services.get(loop)
        if services is None:
            services = self._services[loop] = WebServices(self._app, self.options, ended=lambda: self._services.pop(loop, None))
        return services

    async def close(self) -> None:
        """Ends live connections and closes what this event loop holds open. Optional: it also happens when the loop ends."""
        services = self._services.get(asyncio.get_running_loop())
        if services is not None:
            await services.close()

    @asynccontextmanager
    async def lifespan(self, _: object = None) -> AsyncIterator[None]:
        """For the lifespan of a host application that wants connections to end with it."""
        try:
            yield
        finally:
            await self.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await self._router(scope, receive, send)
        elif scope["type"] == "http":
            early = self._refused_early(scope)
            await (self._router if early is None else early)(scope, receive, send)

    def _refused_early(self, scope: Scope) -> Response | None:
        """Before anything is looked up: large heads, foreign hosts, whose names are remembered, and questions of browsers about
        other origins."""
        connection = HTTPConnection(scope)
        if size_of_head(scope) > LARGEST_HEAD:
            return add_headers(_head_too_large().response())
        try:
            check_host(connection, self.options.allowed_hosts)
        except Problem as problem:
            return add_headers(problem.response())
        if scope["method"] == "OPTIONS" and "origin" in connection.headers:
            cors = cors_headers(connection.headers["origin"], self.options.allowed_origins)
            if "Access-Control-Allow-Origin" in cors:
                return add_headers(Response(status_code=204, headers={**cors, **PREFLIGHT}))
        return None

    async def _static(self, request: Request) -> Response:
        response = static_response(request, request.path_params["name"])
        if response is None:
            return add_headers(Problem(404, "not-found", "there is no such file: open / for the dashboard").response())
        response.headers.update(cors_headers(request.headers.get("origin"), self.options.allowed_origins))
        return add_headers(response)

    async def _dashboard(self, request: Request) -> Response:
        """All its addresses are relative to this one."""
        response = static_response(request, PAGE)
        assert response is not None
        return add_headers(response)

    def _wrong_method(self, request: Request) -> Response:
        """For paths that exist, with methods that they do not have."""
        matching = [route for route in self._routes if route.matches(request.scope)[0] is not Match.NONE]
        allowed = ", ".join(sorted({method for route in matching for method in route.methods or ()}))
        detail = f"{request.method[:LONGEST_METHOD]} is not possible here: use {allowed}; /_api/openapi.json lists all routes"
        return add_headers(Problem(405, "method-not-allowed", detail, headers={"Allow": allowed}).response())

    async def _not_found(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 4404})
            return
        problem = Problem(404, "not-found", "there is no such route: /_api/openapi.json lists all")
        await add_headers(problem.response())(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


def create_app(
    app: Tenure,
    *,
    authorize: Authorize | None = None,
    allowed_hosts: Sequence[str] | None = None,
    allowed_origins: Sequence[str] = (),
    read_only: bool = False,
    secret_names: Sequence[str] = SECRET_NAMES,
    rate: float = 100.0,
    address_rate: float = 1000.0,
    session_hours: float = 12.0,
) -> WebApp:
    """The REST API and live updates of an app, to be mounted under any path.

        api = FastAPI()
        api.mount("/tenure", create_app(app))

    Without `authorize` every request needs a token (`tenure tokens create`). `authorize(request)` returns the `Principal` that
    your own application knows, or None. `allowed_hosts` checks the Host header, if your application does not.
    """
    return WebApp(
        app,
        WebOptions(
            authorize=authorize,
            allowed_hosts=allowed_hosts,
            allowed_origins=tuple(allowed_origins),
            read_only=read_only,
            secret_names=tuple(secret_names),
            rate=rate,
            address_rate=address_rate,
            session_hours=session_hours,
        ),
    )


def _head_too_large() -> Problem:
    return Problem(431, "headers-too-large", f"address and headers have more than {LARGEST_HEAD} bytes together: send less")
