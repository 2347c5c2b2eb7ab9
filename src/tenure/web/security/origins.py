"""Which pages may use the API. Browsers send `Sec-Fetch-Site` and `Origin`, and no script can change them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from tenure.web.problems import Problem


def check_origin(connection: HTTPConnection, allowed: Sequence[str]) -> None:
    """For requests that change something, and for WebSockets. Programs send neither header. They are accepted with a token, or
    without a cookie: a browser sends its cookies, whichever page asked."""
    headers = connection.headers
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None and origin in allowed:
        return
    if site is not None:
        if site in ("same-origin", "none"):
            return
        raise _refusal(origin)
    if origin is not None:
        if is_same_origin(origin, headers.get("host", "")):
            return
        raise _refusal(origin)
    if "cookie" in headers and "authorization" not in headers:
        raise Problem(403, "origin", "a request with a cookie needs an Origin header: use a token instead of the cookie")


def is_from_other_site(connection: HTTPConnection, allowed: Sequence[str]) -> bool:
    """A page of one of the allowed origins asks, and it is not our own."""
    origin, headers = connection.headers.get("origin"), connection.headers
    if origin is None or origin not in allowed or headers.get("sec-fetch-site") == "same-origin":
        return False
    return not is_same_origin(origin, headers.get("host", ""))


def is_same_origin(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return False
    default = {"http": 80, "https": 443}.get(parts.scheme)
    if default is None or not parts.hostname:
        return False
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    accepted = {name, f"{name}:{default}"} if port in (None, default) else {f"{name}:{port}"}
    return host.lower() in accepted


def cors_headers(origin: str | None, allowed: Sequence[str]) -> dict[str, str]:
    """Without credentials: pages of other sites use a token, never our cookie."""
    if not allowed:
        return {}
    if origin is None or origin not in allowed:
        return {"Vary": "Origin"}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": "Retry-After, Location",
        "Vary": "Origin",
    }


PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID",
    "Access-Control-Max-Age": "600",
}


def _refusal(origin: str | None) -> Problem:
    return Problem(403, "origin", f"pages of {origin or 'other sites'} may not do this: list the origin in allowed_origins")
