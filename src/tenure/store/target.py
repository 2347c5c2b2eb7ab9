"""Where the data is."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenure.store.dsn import read_dsn
from tenure.store.statements import DEFAULT_SCHEMA, checked_schema


@dataclass(frozen=True, kw_only=True)
class DatabaseTarget:
    """Where the data is: which server, which schema, and what stands between."""

    dsn: str = field(repr=False)
    schema: str = DEFAULT_SCHEMA
    pooled: bool = False
    """A transaction pooler (PgBouncer) stands between: no prepared statements, no session settings. Found by the port
    6432 or `pgbouncer=true` in the DSN, or by the setting."""

    listen_dsn: str | None = field(default=None, repr=False)
    """A direct way to the server for LISTEN, when `dsn` leads through a pooler."""

    @property
    def channel(self) -> str:
        return self.schema

    @property
    def for_listening(self) -> DatabaseTarget:
        return self if self.listen_dsn is None else DatabaseTarget(dsn=self.listen_dsn, schema=self.schema)

    @staticmethod
    def at(
        dsn: str, *, schema: str = DEFAULT_SCHEMA, pooled: bool | None = None, listen_dsn: str | None = None
    ) -> DatabaseTarget:
        """Raises `ConfigError` for a DSN that cannot be read, without showing any of it."""
        given = read_dsn(dsn)
        listening = None if listen_dsn is None else read_dsn(listen_dsn).text
        is_pooled = given.pooled if pooled is None else pooled
        return DatabaseTarget(dsn=given.text, schema=checked_schema(schema), pooled=is_pooled, listen_dsn=listening)
