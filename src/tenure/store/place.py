"""Where the data is."""

from __future__ import annotations

from dataclasses import dataclass

from tenure.model.errors import ConfigError
from tenure.store.statements import DEFAULT_SCHEMA


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the data is: which server, which schema, and what stands between."""

    dsn: str
    schema: str = DEFAULT_SCHEMA
    pooled: bool = False
    """A transaction pooler (PgBouncer) stands between: no prepared statements, no session settings. Found by the port
    6432 or `pgbouncer=true` in the DSN, or said by the setting."""

    listen_dsn: str | None = None
    """A direct way to the server for LISTEN, when `dsn` leads through a pooler."""

    @property
    def channel(self) -> str:
        return self.schema

    @property
    def for_listening(self) -> Place:
        return self if self.listen_dsn is None else Place(dsn=self.listen_dsn, schema=self.schema)

    @staticmethod
    def at(dsn: str, *, schema: str = DEFAULT_SCHEMA, pooled: bool | None = None, listen_dsn: str | None = None) -> Place:
        import psycopg  # noqa: PLC0415 - slow to import, and needed only once a database is
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

        plain = dsn.replace("pgbouncer=true&", "").replace("?pgbouncer=true", "").replace("&pgbouncer=true", "")
        plain = plain.replace("pgbouncer=true", "").strip()
        try:
            parts = conninfo_to_dict(plain)
        except psycopg.ProgrammingError as error:
            raise ConfigError(f"the DSN cannot be read ({str(error).strip()}): give postgresql://user@host/database") from None
        _check_ports(str(parts.get("port") or ""))
        said = plain != dsn.strip() or str(parts.get("port")) == "6432"
        return Place(dsn=plain, schema=schema, pooled=said if pooled is None else pooled, listen_dsn=listen_dsn)


def _check_ports(ports: str) -> None:
    """Libpq reports a bad port only when it connects, and then it looks like a server that is away."""
    for port in ports.split(","):
        if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ConfigError(f"the DSN cannot be read (port {port!r}): give a number from 1 to 65535")
