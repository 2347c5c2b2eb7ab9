"""Signing in with a browser: a token is exchanged for a cookie that scripts cannot read."""

from __future__ import annotations

from starlette.requests import HTTPConnection
from typing_extensions import TypedDict

from tenure.web.api_routes import ApiCall, Reply, RequestModel
from tenure.web.problems import invalid_value
from tenure.web.security.authentication import COOKIE, address_of
from tenure.web.security.hosts import hostname, is_loopback
from tenure.web.security.principal import Principal
from tenure.web.security.tokens import csrf_of


class SessionBody(RequestModel):
    token: str


class Identity(TypedDict):
    name: str
    scope: str
    via: str
    """token, session, local or hook."""
    queues: list[str] | None
    kinds: list[str] | None
    read_only: bool
    csrf: str | None
    """Of a session: to be sent as `X-CSRF-Token` with everything that changes something."""


async def get_session(call: ApiCall) -> Identity:
    """Show who you are and what you may do."""
    return await _identity(call, call.principal, call.principal.secret)


async def start_session(call: ApiCall, body: SessionBody) -> Identity | Reply:
    """Exchange a token for a session cookie."""
    services = call.services
    principal = await services.authenticator.of_token(body.token, address_of(call.request))
    if principal.via != "token":
        raise invalid_value("body.token", "is not an api token: give one of `tenure tokens create`")
    services.authenticator.check_rate(principal, call.request)
    services.authenticator.check_sign_in(principal)
    seconds = services.options.session_hours * 3600
    session = await services.tokens.start_session(principal, seconds)
    identity = await _identity(call, principal, csrf_of(session))
    return Reply(identity, headers={"Set-Cookie": _cookie(call.request, session, int(seconds))})


async def end_session(call: ApiCall) -> Reply | None:
    """Sign out: the session ends everywhere."""
    if call.principal.via == "session" and call.principal.token_id is not None:
        await call.services.tokens.end_session(call.principal.token_id, call.principal.name)
    return Reply(None, 204, {"Set-Cookie": _cookie(call.request, "", 0)})


def _cookie(connection: HTTPConnection, value: str, seconds: int) -> str:
    """Not readable by scripts, sent to us only, and encrypted, except on loopback, where it does not leave the machine."""
    path = connection.scope.get("root_path") or "/"
    plain = connection.scope.get("scheme", "http") == "http" and is_loopback(hostname(connection.headers.get("host", "")))
    secure = "" if plain else "; Secure"
    return f"{COOKIE}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


async def _identity(call: ApiCall, principal: Principal, csrf: str | None) -> Identity:
    return {
        "name": principal.name,
        "scope": principal.scope.value,
        "via": principal.via,
        "queues": None if principal.queues is None else sorted(principal.queues),
        "kinds": None if principal.kinds is None else sorted(principal.kinds),
        "read_only": await call.services.is_read_only(),
        "csrf": csrf,
    }
