"""What jobs, handles and clients share: connections, settings and the registry of their app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tenure.client.ambient import AmbientTransaction
from tenure.client.portal import Portal
from tenure.model.event_bus import Events
from tenure.model.kinds import Registry
from tenure.model.retries import Retry
from tenure.model.routes import Route

if TYPE_CHECKING:
    from tenure.client.calls import Call
    from tenure.client.direct import DirectEnqueuer
    from tenure.client.handle import Handle
    from tenure.client.options import Options
    from tenure.client.sending import AroundEnqueue
    from tenure.client.session import Session
    from tenure.store.target import DatabaseTarget


class EnqueueInterceptor(Protocol):
    """Receives calls instead of the database, for tests."""

    async def enqueue(self, calls: list[Call[Any]], options: Options) -> list[Handle[Any]]: ...

    def enqueue_sync(self, calls: list[Call[Any]], options: Options) -> list[Handle[Any]]: ...


@dataclass(frozen=True, slots=True)
class ClientRuntime:
    """Code in an event loop uses the session, other code the portal."""

    session: Callable[[], Session]
    portal: Portal
    database: Callable[[], DatabaseTarget]
    kinds: Registry
    events: Events
    configure: Callable[..., None]
    """Overrides settings that the code gave."""
    direct: Callable[[], DirectEnqueuer]
    """Enqueues without an event loop."""
    client_timeout: Callable[[], float]
    """Seconds for which enqueues and reads are repeated while PostgreSQL is away."""
    notifies_in_transactions: Callable[[], bool]
    default_retry: Callable[[], Retry]
    route: Callable[[str], Route | None]
    """Where settings send jobs of a kind."""
    where: Callable[[], str]
    """`module:attribute` of the app, for handles that are pickled."""
    interceptors: list[EnqueueInterceptor] = field(default_factory=list)
    """The last one receives all that is enqueued. Empty: jobs are written to the database."""
    ambient: AmbientTransaction | None = None
    """The framework's transaction, which enqueues join."""
    around_enqueue: list[AroundEnqueue] = field(default_factory=list)
    """Around every enqueue; outermost first."""
