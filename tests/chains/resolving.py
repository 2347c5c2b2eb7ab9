"""Rounds of the resolver, run by the test itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tenure.leader.duties.resolver import Resolver
from tenure.leader.reporting import Reporting
from tenure.model.wakeup import Wakeup
from tenure.store.duty_link import DutyLink
from tenure.store.leases import Term
from tenure.store.target import DatabaseTarget
from tests.store.database import Database


class Resolving:
    def __init__(self, resolver: Resolver, link: DutyLink, term: Term, heard: list[Wakeup]) -> None:
        self.resolver = resolver
        self.link = link
        self.term = term
        self.heard = heard
        """What was notified."""

    async def settle(self, most: int = 100) -> int:
        """Rounds until there is nothing left to do. Returns how many."""
        for number in range(most):
            result = await self.resolver.run_once(self.link, self.term)
            assert result.holds
            if not result.touched:
                return number + 1
        raise AssertionError("the resolver does not come to an end")

    async def part(self, name: str) -> int:
        return await self.resolver.parts[name](self.link, self.term)


@asynccontextmanager
async def resolving(database: Database, dsn: str) -> AsyncIterator[Resolving]:
    heard: list[Wakeup] = []
    link = DutyLink(DatabaseTarget.at(dsn))
    try:
        yield Resolving(Resolver(Reporting(notify=heard.append)), link, database.term("resolver"), heard)
    finally:
        database.end_term("resolver")
        await link.close()
