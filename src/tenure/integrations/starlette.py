"""Starlette, and what FastAPI inherits of it: the lifespan, the web API below a path, and errors as responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tenure.app import Tenure
from tenure.integrations.http_errors import STATUS, detail_of, headers_of, status_of
from tenure.model.errors import TenureError
from tenure.web import WebApp, create_app

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def lifespan(
    app: Tenure, inner: Any = None, *, check: bool = True, worker: bool = False, concurrency: int | None = None
) -> Lifespan:
    """For `FastAPI(lifespan=lifespan(app))`: raises at the start if the database or its schema is not as this code needs it, and
    closes the app's connections at the end.

    `worker=True` also runs jobs in this process, for development and small services: a handler that blocks the event loop blocks
    requests, and the renewal of the lease. `inner` is a lifespan of your own, which runs inside of this one.
    """

    @asynccontextmanager
    async def running(api: Any) -> AsyncIterator[Mapping[str, Any] | None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(app.close)
            if check:
                await app.check()
            if worker:
                await stack.enter_async_context(app.running(concurrency=concurrency))
            for web in mounted_at(api):
                stack.push_async_callback(web.close)
            yield None if inner is None else await stack.enter_async_context(inner(api))

    return running


def mount(api: Starlette, app: Tenure, path: str = "/tenure", **options: Any) -> WebApp:
    """Serves the web API of the app below `path`. `options` are those of `tenure.web.create_app`, such as `authorize`."""
    web = create_app(app, **options)
    api.mount(path, web)
    return web


def mounted_at(api: Any) -> list[WebApp]:
    routes = getattr(api, "routes", [])
    return [found for route in routes if isinstance(found := getattr(route, "app", None), WebApp)]


def add_error_handlers(api: Starlette) -> None:
    """Answers errors of Tenure that a request can cause: an unknown or malformed job id with 404, arguments that do not fit with
    422, an outage of PostgreSQL with 503. The body is `{"detail": ...}`, without any secrets or tracebacks."""

    async def respond(_: Request, error: Exception) -> Response:
        assert isinstance(error, TenureError)
        return JSONResponse({"detail": detail_of(error)}, status_of(error), headers=headers_of(error))

    for error in STATUS:
        api.add_exception_handler(error, respond)
