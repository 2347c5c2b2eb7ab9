"""Runs the web app by itself: `tenure web`."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn

from tenure.model.errors import ConfigError, StoreUnavailable
from tenure.outages import failures
from tenure.periodic import backoff
from tenure.store import tokens
from tenure.store.faults import ConnectionRejected
from tenure.web.http_protocol import HttpProtocol
from tenure.web.security.hosts import hostname, is_loopback
from tenure.web.security.secret_names import SECRET_NAMES
from tenure.web.web_app import WebApp
from tenure.web.web_options import WebOptions

if TYPE_CHECKING:
    from tenure.app import Tenure

LARGEST_FRAME = 64 * 1024  # bytes of a WebSocket message
MOST_CONNECTIONS = 5000


@dataclass(frozen=True, kw_only=True)
class WebServerOptions:
    host: str = "127.0.0.1"
    port: int = 8080
    fd: int | None = None
    """A socket that listens already, instead of `host` and `port`."""
    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()
    trusted_proxies: Sequence[str] = ()
    """Addresses of proxies whose X-Forwarded-* headers are believed."""
    read_only: bool = False
    secret_names: Sequence[str] = ()
    """Hidden besides `SECRET_NAMES`."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")


async def serve(app: Tenure, options: WebServerOptions, ready: Callable[[str], None]) -> None:
    """Serves until a signal arrives. `ready(url)` is called when requests are accepted. Waits while PostgreSQL is down.

    Raises `ConfigError` for an address other than loopback while no token exists.
    """
    await _check_when_reachable(app)
    local = is_loopback(hostname(options.host))
    if not local and not await _tokens_exist(app):
        raise ConfigError(
            f"--host {options.host} can be reached from other machines, and no token exists: create one first with "
            "`tenure tokens create NAME --scope admin`, or leave --host out"
        )
    web = WebApp(
        app,
        WebOptions(
            open_locally=local,
            allowed_hosts=[*options.allowed_hosts, options.host],
            allowed_origins=tuple(options.allowed_origins),
            read_only=options.read_only,
            secret_names=(*SECRET_NAMES, *options.secret_names),
        ),
    )
    config = uvicorn.Config(
        web,
        host=options.host,
        port=options.port,
        http=HttpProtocol,
        ws_max_size=LARGEST_FRAME,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=64 * 1024,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=5,
        proxy_headers=bool(options.trusted_proxies),
        forwarded_allow_ips=list(options.trusted_proxies),
        server_header=False,
        access_log=False,
        log_config=None,
        lifespan="on",
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # the line of `ready` is enough
    server = _Server(config, ready)
    try:
        await server.serve(None if options.fd is None else [socket.socket(fileno=options.fd)])
    except SystemExit:
        raise ConfigError(f"cannot listen on {options.host}:{options.port}: choose another --port") from None
    if not server.started:
        raise ConfigError(f"cannot listen on {options.host}:{options.port}: choose another --port")


async def _check_when_reachable(app: Tenure) -> None:
    """As workers do: an outage at the start is waited for, and what a person must fix is raised at once."""
    attempts = 0
    while True:
        try:
            await app.check()
            return
        except ConnectionRejected:
            raise
        except StoreUnavailable as error:
            attempts += 1
            failures.failed("web", error)
        await asyncio.sleep(backoff(attempts))


async def _tokens_exist(app: Tenure) -> bool:
    [found] = await app._runtime.session().fetch(tokens.exist())  # noqa: SLF001 - the connections of the app
    return found
