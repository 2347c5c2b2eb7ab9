"""Reads a DSN as people have it: with SQLAlchemy's `+driver` and parameters. No error shows any part of a password."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenure.model.errors import ConfigError

SCHEMES = ("postgresql", "postgres")
EXAMPLE = "postgresql://user@host/database"
HIDDEN = "***"

# Options of SQLAlchemy, its drivers and its pool. They do not change which server is meant or how the connection is secured.
DROPPED = frozenset(
    {
        "async_fallback",
        "command_timeout",
        "echo",
        "executemany_batch_page_size",
        "executemany_mode",
        "executemany_values_page_size",
        "max_cacheable_statement_size",
        "max_cached_statement_lifetime",
        "max_overflow",
        "max_size",
        "min_size",
        "native_inet_types",
        "pool_pre_ping",
        "pool_recycle",
        "pool_size",
        "pool_timeout",
        "prepared_statement_cache_size",
        "prepared_statement_name_func",
        "server_side_cursors",
        "statement_cache_size",
        "timeout",
        "use_native_hstore",
        "use_native_uuid",
    }
)
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
SSL_WORDS = {"true": "require", "1": "require", "on": "require", "false": "disable", "0": "disable", "off": "disable"}

ENCODE = (
    "special characters in the user name and the password must be percent-encoded: "
    "@ is %40, / is %2F, : is %3A, ? is %3F, # is %23, % is %25"
)
PORT = "the port must be a number from 1 to 65535; " + ENCODE

_IN_URL = re.compile(r"(://[^:@/?]*):.*@", re.DOTALL)
_IN_QUERY = re.compile(r"([?&](?:ssl)?password=)[^&]*")
_IN_WORDS = re.compile(r"(\b(?:ssl)?password\s*=\s*)('(?:\\.|[^'\\])*'|(?:\\.|\S)+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Dsn:
    text: str
    """As libpq reads it."""
    pooled: bool
    """A transaction pooler is named by `pgbouncer=true` or its usual port, 6432."""


def read_dsn(given: str) -> Dsn:
    """Raises `ConfigError`, which names what is wrong and never quotes the DSN."""
    text = given.strip()
    pooled = False
    if "://" in text and _URL.match(text):
        text, pooled = _plain_url(text)
    elif "pgbouncer=true" in text:
        text, pooled = text.replace("pgbouncer=true", "").strip(), True
    ports = str(_parts(text).get("port") or "").split(",")
    if any(port and not _is_port(port) for port in ports):
        raise _unreadable(PORT)
    return Dsn(text, pooled or "6432" in ports)


def dsn_of(parameters: Mapping[str, Any]) -> str:
    """From the parameters of a driver's connect(). Those that libpq does not know, such as a cursor class, are left out."""
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415

    known = _keywords()
    return make_conninfo(**{name: value for name, value in parameters.items() if name in known and value is not None})


def sockets_of(dsn: str) -> Path | None:
    """The folder of the socket, where the DSN names one."""
    try:
        host = str(_parts(read_dsn(dsn).text).get("host") or "")
    except ConfigError:
        return None  # reported where it is used
    return Path(host) if host.startswith("/") and "," not in host else None


def without_password(dsn: str) -> str:
    """What may be shown on a screen."""
    if "://" in dsn:
        return _IN_QUERY.sub(rf"\g<1>{HIDDEN}", _IN_URL.sub(rf"\1:{HIDDEN}@", dsn))
    return _IN_WORDS.sub(rf"\g<1>{HIDDEN}", dsn)


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*://")


def _plain_url(text: str) -> tuple[str, bool]:
    scheme, _, rest = text.partition("://")
    if scheme.lower().partition("+")[0] not in SCHEMES:
        raise ConfigError(f"the DSN is a {scheme.lower()}:// address, but Tenure needs PostgreSQL: give {EXAMPLE}")
    account, host, path, query = _split(rest)
    pairs = [(name, value) for name, _, value in (part.partition("=") for part in query.split("&") if part)]
    # libpq ends the account at the first @ or /. What is left over of a password would be taken for a host, port or name.
    exposed = ":" in account if account else ":" in host
    if exposed and "@" in host + path:
        raise _unreadable(ENCODE)
    if exposed and not account and "@" in query and not all(name in _keywords() for name, _ in pairs):
        raise _unreadable(ENCODE)
    pooled = ("pgbouncer", "true") in pairs
    pairs = [pair for pair in pairs if pair[0] != "pgbouncer"]
    kept = "&".join(f"{name}={value}" for name, value in _hosts(list(_understood(pairs))))
    return f"postgresql://{account}{host}{path}" + (f"?{kept}" if kept else ""), pooled


def _split(rest: str) -> tuple[str, str, str, str]:
    """`user:password@`, `host:port`, `/database` and the parameters, cut where libpq cuts them."""
    at, slash = rest.find("@"), rest.find("/")
    has_account = at >= 0 and (slash < 0 or at < slash)
    account, rest = (rest[: at + 1], rest[at + 1 :]) if has_account else ("", rest)
    before, _, query = rest.partition("?")
    host, slash_, path = before.partition("/")
    return account, host, slash_ + path, query


def _understood(pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, value in pairs:
        if name == "ssl":
            yield "sslmode", _ssl_mode(value)
        elif name in _keywords():
            yield name, value
        elif name not in DROPPED:
            shown = f" {name!r}" if re.fullmatch(r"[a-z_]{1,40}", name) else ""
            raise _unreadable(f"its parameter{shown} is not one of PostgreSQL's; leave it out")


def _ssl_mode(value: str) -> str:
    """`ssl` is `sslmode` for asyncpg. Never dropped: that would make an encrypted connection an open one."""
    mode = SSL_WORDS.get(value.lower(), value)
    if mode not in SSL_MODES:
        raise _unreadable(f"its parameter 'ssl' must be one of {', '.join(SSL_MODES)}")
    return mode


def _hosts(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """SQLAlchemy repeats `host=a:1&host=b:2` where libpq wants `host=a,b&port=1,2`."""
    hosts = [value for name, value in pairs if name == "host"]
    if len(hosts) < 2 and not any(re.fullmatch(r"[^/:,]+:\d+", host) for host in hosts):
        return pairs
    names, ports = zip(*(host.partition(":")[::2] if host.count(":") == 1 else (host, "") for host in hosts), strict=True)
    others = [(name, value) for name, value in pairs if name != "host" and not (name == "port" and any(ports))]
    return [("host", ",".join(names)), *([("port", ",".join(ports))] if any(ports) else []), *others]


def _keywords() -> frozenset[str]:
    from psycopg import pq  # noqa: PLC0415 - slow to import, and needed only once a database is

    return frozenset(option.keyword.decode() for option in pq.Conninfo.get_defaults())


def _parts(text: str) -> dict[str, object]:
    import psycopg  # noqa: PLC0415
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    try:
        return dict(conninfo_to_dict(text))
    except psycopg.Error:
        # libpq quotes what it could not read, which may be the password.
        if "://" in text:
            raise _unreadable(ENCODE) from None
        raise _unreadable("key=value pairs such as host=db dbname=shop are expected; quote values with spaces in them") from None


def _is_port(port: str) -> bool:
    return port.isascii() and port.isdigit() and 0 < int(port) < 65536


def _unreadable(why: str) -> ConfigError:
    return ConfigError(f"the DSN cannot be read ({why}): give {EXAMPLE}")
