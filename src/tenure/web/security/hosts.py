"""The Host header. A page of another site can make its own name lead to our address (DNS rebinding), but it cannot change the
name that the browser sends."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address, ip_network

from starlette.requests import HTTPConnection

from tenure.web.problems import Problem

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
"""Headers of a proxy: the request does not come from the peer of the connection."""

MOST_KNOWN = 1000
"""Names and addresses that need not be parsed again for every request."""


def hostname(host: str) -> str:
    """Without port and brackets, in lower case. What is neither is returned as it is."""
    if host.startswith("["):
        name, bracket, rest = host[1:].partition("]")
        return name.lower() if bracket and (not rest or rest.startswith(":")) else host.lower()
    return host.rpartition(":")[0].lower() if host.count(":") == 1 else host.lower()


@lru_cache(MOST_KNOWN)
def is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


@lru_cache(MOST_KNOWN)
def network_of(ip: str) -> str:
    """What is counted as one address. Of IPv6 the first 64 bits: a single customer has all the others."""
    try:
        address = ip_address(ip.partition("%")[0])
    except ValueError:
        return ip
    if address.version == 4 or address.is_loopback:
        return str(address)
    return str(address.ipv4_mapped or ip_network((address, 64), strict=False))


def check_host(connection: HTTPConnection, allowed: Sequence[str] | None) -> None:
    """Names must be listed. An address is accepted: it is not found by DNS, so it cannot be rebound."""
    if allowed is None:
        return
    name = hostname(connection.headers.get("host", ""))
    if not (is_loopback(name) or _is_address(name) or name in {given.lower() for given in allowed}):
        raise Problem(421, "host-not-allowed", f"this server is not {name[:100]!r}: start it with --allowed-host for that name")


def is_local(connection: HTTPConnection) -> bool:
    """The request comes from this machine, and not through a proxy."""
    peer = connection.client
    return (
        peer is not None
        and is_loopback(peer.host)
        and is_loopback(hostname(connection.headers.get("host", "")))
        and not any(name in connection.headers for name in FORWARDED)
    )


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
