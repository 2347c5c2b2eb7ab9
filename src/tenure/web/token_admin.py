"""Creates, lists and revokes tokens, for the command line and for your own code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from tenure.client.filters import to_id
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError
from tenure.store import tokens
from tenure.store.audit import AuditSource
from tenure.store.tokens import ListedTokenRow
from tenure.web.security.principal import Scope
from tenure.web.security.tokens import api_token
from tenure.web.security.trackers import LONGEST_LIFE, TrackerSigner

if TYPE_CHECKING:
    from tenure.app import Tenure
    from tenure.client.session import Session

MOST_LISTED = 1000


@dataclass(frozen=True, slots=True)
class CreatedToken:
    id: UUID
    token: str
    """Shown once: only its hash is stored."""


async def create_token(
    app: Tenure,
    name: str,
    scope: Scope | str = Scope.READ,
    *,
    queues: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    rate: float | None = None,
    expires_in: Duration | None = None,
    by: str | None = None,
    source: AuditSource | None = None,
) -> CreatedToken:
    """A new token for the web API. `rate`: requests per second, 0 for no limit. `source`: it is recorded in the audit log."""
    if scope not in list(Scope):
        raise ConfigError(f"scope is {scope!r}, but must be one of {', '.join(Scope)}")
    if isinstance(queues, str) or isinstance(kinds, str):
        raise ConfigError("queues and kinds are lists of names: give queues=['mail']")
    if rate is not None and not 0 <= rate < 1e9:
        raise ConfigError(f"rate is {rate!r}, but must be a number of requests per second, or 0 for no limit")
    seconds = None if expires_in is None else to_seconds(expires_in, what="expires_in")
    token, new = api_token(name, str(scope), queues=queues, kinds=kinds, rate=rate, seconds=seconds, by=by)
    await _session(app).fetch(tokens.create(new, source))
    return CreatedToken(new.id, token)


async def list_tokens(app: Tenure, *, revoked: bool = False) -> list[ListedTokenRow]:
    """Those in force, newest first; with `revoked`, the others as well."""
    return await _session(app).fetch_all(tokens.list_all(limit=MOST_LISTED, revoked=revoked))


async def revoke_token(app: Tenure, which: str, *, by: str | None = None, source: AuditSource | None = None) -> list[UUID]:
    """By id or name. Running servers notice within 10 s; open live connections end within 30 s. Returns the ids.
    `source`: it is recorded in the audit log."""
    return await _session(app).fetch_all(tokens.revoke(which, by, source))


async def tracker_token(app: Tenure, job_id: UUID | str, *, expires_in: Duration = "1h", cancel: bool = False) -> str:
    """Access to one job, for the page of the user who started it: no input, no traceback. At most for a day."""
    seconds = to_seconds(expires_in, what="expires_in")
    if not 0 < seconds <= LONGEST_LIFE:
        raise ConfigError(f"expires_in is {expires_in!r}, but must be more than 0 and at most a day")
    session = _session(app)
    return (await TrackerSigner(session.fetch, session.fetch).sign(to_id(job_id), seconds, may_cancel=cancel)).token


def _session(app: Tenure) -> Session:
    return app._runtime.session()  # noqa: SLF001 - the connections of the app in this event loop
