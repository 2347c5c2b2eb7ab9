"""What the routes use: made for each event loop at its first request, because a mounted app gets no start event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from tenure.client.client import Client
from tenure.client.schedules import Schedules
from tenure.client.workflows import Workflows
from tenure.flow.chains import Chains
from tenure.store import reports, tokens
from tenure.store.query import Fetch, Query, T
from tenure.web.fleet_stats import FleetStats
from tenure.web.heavy_requests import HeavyRequests
from tenure.web.kind_directory import KindDirectory
from tenure.web.live.flows import FlowReader
from tenure.web.live.hub import LiveHub
from tenure.web.plain_calls import PlainCalls
from tenure.web.security.audit_log import AuditLog
from tenure.web.security.authentication import Authenticator
from tenure.web.security.pending_sockets import PendingSockets
from tenure.web.security.rate_limits import RateLimiter
from tenure.web.security.redaction import Redaction
from tenure.web.security.tokens import TokenKeeper
from tenure.web.security.trackers import TrackerSigner
from tenure.web.web_options import WebOptions
from tenure.web.web_session import WebSession

if TYPE_CHECKING:
    from tenure.app import Tenure

WRITABLE_RECHECK = 10.0  # seconds


class WebServices:
    def __init__(self, app: Tenure, options: WebOptions, ended: Callable[[], object]) -> None:
        """`ended()` is called when the event loop ends or the services are closed."""
        self.options = options
        connections = app._connections  # noqa: SLF001 - shares LISTEN with the clients and workers of the app in this loop
        runtime = app._runtime  # noqa: SLF001 - the same jobs and settings, on connections of the web server
        self.session = WebSession(runtime.database(), connections.wakeups(), ended)
        self.runtime = replace(runtime, session=lambda: self.session)
        self.client = Client(self.runtime)
        self.schedules = Schedules(self.runtime)
        self.chains = Chains(self.runtime)
        self.workflows = Workflows(self.runtime)
        self.redaction = Redaction([*options.secret_names, *app.settings.web_secret_names])
        self._writable: tuple[float, bool] | None = None
        self._probing: asyncio.Task[None] | None = None

    async def read(self, query: Query[T]) -> list[T]:
        """By index; repeated while PostgreSQL is away."""
        return await self.session.reader(self.runtime.client_timeout())(query)

    async def read_wide(self, query: Query[T]) -> list[T]:
        """The same for statements that read whole tables."""
        return await self.session.reader(self.runtime.client_timeout(), wide=True)(query)

    @property
    def write(self) -> Fetch:
        return self.session.fetch

    @cached_property
    def kinds(self) -> KindDirectory:
        return KindDirectory(self.runtime.kinds, self.read)

    @cached_property
    def plain_calls(self) -> PlainCalls:
        return PlainCalls(self.runtime.kinds)

    @cached_property
    def limiter(self) -> RateLimiter:
        return RateLimiter()

    @cached_property
    def heavy_requests(self) -> HeavyRequests:
        return HeavyRequests()

    @cached_property
    def pending_sockets(self) -> PendingSockets:
        return PendingSockets()

    @cached_property
    def tokens(self) -> TokenKeeper:
        return TokenKeeper(self.read, self.write)

    @cached_property
    def trackers(self) -> TrackerSigner:
        return TrackerSigner(self.read, self.write)

    @cached_property
    def authenticator(self) -> Authenticator:
        return Authenticator(self.options, self.tokens, self.trackers, self.limiter)

    @cached_property
    def audit(self) -> AuditLog:
        return AuditLog(self.write)

    @cached_property
    def stats(self) -> FleetStats:
        return FleetStats(self.client, self.schedules, self.read, self.read_wide, self.redaction)

    @cached_property
    def live(self) -> LiveHub:
        flows = FlowReader(self.chains, self.workflows, self.read, self.redaction)
        return LiveHub(self.session, self.read, self.stats, flows, self.redaction)

    async def check_reachable(self) -> None:
        """One question for all who ask at the same time: they need no token, and must not take the connections of others."""
        if self._probing is None:
            self._probing = asyncio.create_task(self._probe())
        await asyncio.shield(self._probing)

    async def _probe(self) -> None:
        try:
            await self.session.reader(1.0)(tokens.exist())
        finally:
            self._probing = None

    async def is_read_only(self) -> bool:
        """By its options, or because its account or the server does not allow changes."""
        if self.options.read_only:
            return True
        now = asyncio.get_running_loop().time()
        if self._writable is None or now - self._writable[0] > WRITABLE_RECHECK:
            [writable] = await self.read(reports.probe_writable())
            self._writable = now, writable
        return not self._writable[1]

    async def close(self) -> None:
        if "live" in self.__dict__:
            await self.live.close()
        await self.session.close()
