"""A connection for the rounds of duties: no statement on it waits long for a lock that another session holds."""

from __future__ import annotations

from tenure.model.errors import StoreUnavailable
from tenure.store import faults, leases
from tenure.store.link import Link
from tenure.store.query import Query, T
from tenure.store.target import DatabaseTarget

LOCK_TIMEOUT = 5.0
"""Seconds. A round that does not get a lock by then gives up and is tried again, so that a table that a person has locked does
not hold a connection, and a leader does not lose its duty for it."""

_IN_THE_WAY = {"40001", "40P01", "55P03", "57014"}


class Contended(StoreUnavailable):
    """Another session was in the way, or the statement was canceled. Nothing is wrong with the connection."""


class DutyLink(Link):
    def __init__(self, database: DatabaseTarget, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        super().__init__(database, "duties", hot=True, lock_timeout=lock_timeout)
        self._milliseconds = int(lock_timeout * 1000)

    async def fetch(self, query: Query[T], *, within: float | None = None, urgent: bool = False) -> list[T]:
        """As for any link, but raises `Contended` when another session was in the way."""
        try:
            if self.database.pooled:
                return await self._bounded(query)
            return await super().fetch(query, within=within, urgent=urgent)
        except faults.FailedInside:
            raise
        except StoreUnavailable as error:
            if error.__cause__ is not None and getattr(error.__cause__, "sqlstate", None) in _IN_THE_WAY:
                text = f"another session is in the way: {faults.words(error.__cause__)}"
                raise Contended(text, cause=error.cause, statement=error.statement, server=error.server) from error
            raise

    async def _bounded(self, query: Query[T]) -> list[T]:
        async with self.transaction() as run:
            await run(leases.bound_locks(self._milliseconds))
            return await run(query)
