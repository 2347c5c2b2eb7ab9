"""Finds out who makes a request: by a token, a session cookie, the hook of the host application, or because it is local."""

from __future__ import annotations

import inspect

from starlette.requests import HTTPConnection

from tenure.web.problems import Problem
from tenure.web.security.hosts import is_local, is_loopback, network_of
from tenure.web.security.origins import is_from_other_site
from tenure.web.security.principal import LOCAL, Principal
from tenure.web.security.rate_limits import SIGN_INS_PER_MINUTE, FailedLogins, RateLimiter
from tenure.web.security.tokens import API, SESSION, TokenKeeper, same
from tenure.web.security.trackers import TRACKER, TrackerSigner
from tenure.web.web_options import WebOptions

COOKIE = "tenure_session"
CSRF_HEADER = "x-csrf-token"
LONGEST_TOKEN = 1000
RECHECK = 15.0
"""Seconds after which a connection that stays open asks again. Answers are used for ten, so a revoked token ends within 30."""

SENT_BY_BROWSERS = frozenset({"", "basic", "digest", "negotiate", "ntlm"})
"""Schemes of Authorization headers that no page has set: none, or what a browser adds by itself."""


class Authenticator:
    def __init__(self, options: WebOptions, tokens: TokenKeeper, trackers: TrackerSigner, limiter: RateLimiter) -> None:
        self._options = options
        self._tokens = tokens
        self._trackers = trackers
        self._limiter = limiter
        self._failed = FailedLogins(limiter)

    async def find(self, connection: HTTPConnection) -> Principal | None:
        """None: the request has no credentials. Raises for wrong ones."""
        scheme, _, given = connection.headers.get("authorization", "").partition(" ")
        given = given.strip()
        if scheme.lower() == "bearer" and (self._options.authorize is None or given.startswith((API, TRACKER))):
            return await self.of_token(given, address_of(connection))
        # The cookies of a browser say who uses it, not which page asks: a page of another site needs a token.
        by_cookie = "cookie" in connection.headers and scheme.lower() in SENT_BY_BROWSERS
        from_other_site = is_from_other_site(connection, self._options.allowed_origins)
        if not (by_cookie and from_other_site) and (principal := await self._user(connection)) is not None:
            return principal
        # A page of another site runs in a browser of this machine, but is not one of its users.
        if self._options.open_locally and not from_other_site and is_local(connection) and await self._is_open(connection):
            return LOCAL
        return None

    async def _is_open(self, connection: HTTPConnection) -> bool:
        for_change = connection.scope.get("method", "GET") not in ("GET", "HEAD", "OPTIONS")
        return await self._tokens.none_exist(for_change=for_change)

    async def require(self, connection: HTTPConnection) -> Principal:
        principal = await self.find(connection)
        if principal is None:
            raise unauthorized(
                "this needs a token: send it in the header `Authorization: Bearer ...`; `tenure tokens create` makes one"
            )
        return principal

    async def of_token(self, token: str, address: str) -> Principal:
        """Raises unless it is in force."""
        found = await self._found(token, address)
        if found is None:
            if not token.startswith(TRACKER):
                self._failed.count(address, token)
            raise unauthorized("this token is not valid, or no longer: create another one with `tenure tokens create`")
        return found

    async def still_valid(self, connection: HTTPConnection, principal: Principal, token: str | None) -> bool:
        """For connections that stay open: asks again, as for a new one."""
        try:
            found = await (self.find(connection) if token is None else self.of_token(token, address_of(connection)))
        except Problem:  # also if its address may not ask now: what cannot be confirmed ends, and the client connects again
            return False
        return found is not None and _rights(found) == _rights(principal)

    def check_address(self, connection: HTTPConnection) -> None:
        """Before it is known who asks. Not for loopback: all users of a proxy that is not trusted seem to come from there."""
        rate, address = self._options.address_rate, address_of(connection)
        if rate > 0 and not is_loopback(address):
            self._limiter.check(f"address {address}", rate, max(1.0, 2 * rate))

    def check_rate(self, principal: Principal, connection: HTTPConnection) -> None:
        rate = self._options.rate if principal.rate is None else principal.rate
        if rate > 0:
            self._limiter.check(counted_as(principal, connection), rate, max(1.0, 2 * rate))

    def check_sign_in(self, principal: Principal) -> None:
        """Also for tokens whose requests are not limited."""
        what = "more sign-ins with this token than are allowed"
        self._limiter.check(f"sign-in {principal.account}", SIGN_INS_PER_MINUTE / 60, SIGN_INS_PER_MINUTE, what)

    async def _found(self, token: str, address: str) -> Principal | None:
        if not token or len(token) > LONGEST_TOKEN or not token.isascii():
            return None
        if token.startswith(TRACKER):
            # A signature cannot be guessed. Those that fail are mostly expired, of pages that were left open: they must not lock
            # out other users with the same address.
            return await self._trackers.find(token)
        if self._tokens.remembered(token):
            return await self._tokens.find(token)
        self._failed.check(address)  # before the database is asked
        return await self._tokens.find(token) if token.startswith(API) else None

    async def _session(self, session: str, address: str) -> Principal | None:
        """A cookie that is out of date is not an attack: it counts as no credentials."""
        if not session.startswith(SESSION) or len(session) > LONGEST_TOKEN or not session.isascii():
            return None
        if not self._tokens.remembered(session):
            self._failed.check(address)
        found = await self._tokens.find(session)
        if found is None:
            self._failed.count(address, session)
        return found

    async def _user(self, connection: HTTPConnection) -> Principal | None:
        """By a session of ours, or by the host application."""
        if session := connection.cookies.get(COOKIE):
            found = await self._session(session, address_of(connection))
            if found is not None:
                return found
        if self._options.authorize is None:
            return None
        answer = self._options.authorize(connection)
        return await answer if inspect.isawaitable(answer) else answer


def _rights(principal: Principal) -> tuple[object, ...]:
    return principal.name, principal.scope, principal.queues, principal.kinds, principal.job_id


def check_csrf(connection: HTTPConnection, principal: Principal) -> None:
    """The second defence of sessions, beside the check of the origin."""
    if principal.via == "session" and not same(connection.headers.get(CSRF_HEADER), principal.secret):
        raise Problem(
            403, "csrf", "the header X-CSRF-Token is not that of the session: send the `csrf` that GET /_api/session returns"
        )


def counted_as(principal: Principal, connection: HTTPConnection) -> str:
    """Under which the requests of a principal are counted. A user may have the tracker tokens of many jobs."""
    return f"tracker {address_of(connection)}" if principal.via == "tracker" else principal.account


def address_of(connection: HTTPConnection) -> str:
    """Under which requests without a principal are counted."""
    return network_of(ip_of(connection))


def ip_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client is not None else "unknown"


def unauthorized(detail: str) -> Problem:
    return Problem(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
