"""What jobs, handles and clients share: connections, settings and the registry of their app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenure.client.portal import Portal
from tenure.model.events import Events
from tenure.model.kinds import Registry
from tenure.model.retries import Retry

if TYPE_CHECKING:
    from tenure.client.direct import DirectEnqueuer
    from tenure.client.session import Session
    from tenure.store.target import DatabaseTarget


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
    patience: Callable[[], float]
    """Seconds for which enqueues and reads are repeated while PostgreSQL is away."""
    notifies_in_transactions: Callable[[], bool]
    default_retry: Callable[[], Retry]
    where: Callable[[], str]
    """`module:attribute` of the app, for handles that are pickled."""
