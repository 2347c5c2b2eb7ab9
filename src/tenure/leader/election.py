"""How it is settled who does the duties.

`lease`: whoever finds a duty free takes its row, and keeps it as long as its heart beats.
`shared`: everybody does the duties that go by batches of locked rows; the others as by `lease`. For development, and for
fleets so large that one process could not keep up.
`advisory`: the holder of one session lock does all. The server frees it the moment the session ends.

In all of them the row in `leases` has the last word: every write of a duty checks its term there.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from tenure.leader.duties.duty import Duty
from tenure.leader.settings import STRATEGIES, LeaderSettings
from tenure.model.errors import ConfigError
from tenure.store import leases
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget

SHARED_TTL = 60.0
SHARED = str(UUID(int=0))
"""The holder that all share."""

LONGEST_WAIT = 10.0

LOCK_ASKED = (0.5, 2.0)
"""Seconds between two questions of a candidate for the lock."""

LOCK_ASKERS = 16
"""Candidates up to which each asks as often as that. In a larger crowd each asks less, and one of them as soon."""


@dataclass(frozen=True, slots=True)
class Won:
    terms: list[Term]
    ask_again_in: float
    """Seconds."""


class Election:
    def __init__(
        self, database: DatabaseTarget, holder: str, settings: LeaderSettings, whereabouts: Mapping[str, object]
    ) -> None:
        strategy = settings.strategy
        if strategy not in STRATEGIES:
            raise ConfigError(f"leader.strategy is {strategy!r}: use one of {', '.join(STRATEGIES)}")
        if strategy == "advisory" and database.pooled:
            raise ConfigError(
                "leader.strategy 'advisory' needs a session of its own, and behind a transaction pooler there is none: "
                "use 'lease', or give a dsn that goes to PostgreSQL directly"
            )
        self._holder = holder
        self._strategy = strategy
        self._ttl = settings.term
        self._locked = False
        self._whereabouts = {**whereabouts, "strategy": strategy}
        self._key = zlib.crc32(database.schema.encode()) | 0x7E9 << 32

    @property
    def by_lock(self) -> bool:
        return self._strategy == "advisory"

    def is_shared(self, duty: Duty) -> bool:
        return self._strategy == "shared" and duty.divisible

    async def stand(self, link: Link, duties: Iterable[Duty], *, crowd: int = 1) -> Won:
        """Asks once for all of these. `crowd`: how many candidates there are, about."""
        alone = [duty for duty in duties if not self.is_shared(duty)]
        together = [duty for duty in duties if self.is_shared(duty)]
        if not await self.may_lead(link):
            # The lock is free the moment its session ends, without a notification: so candidates ask often.
            return Won([], random.uniform(*LOCK_ASKED) * max(1.0, crowd / LOCK_ASKERS))  # noqa: S311
        terms, free_in = await self._acquire(link, self._holder, alone, self._ttl, forced=self.by_lock) if alone else ([], None)
        if together:
            terms += (await self._acquire(link, SHARED, together, SHARED_TTL))[0]
        # A little after the others' leases may have run out, and not all candidates in the same moment.
        wait = LONGEST_WAIT if free_in is None else max(0.0, min(LONGEST_WAIT, free_in))
        return Won(terms, wait + random.uniform(0.1, 1.0))  # noqa: S311

    async def may_lead(self, link: Link) -> bool:
        """Whether we hold the lock by which it is settled, where there is one. A session that broke has lost it."""
        if not self.by_lock:
            return True
        [self._locked] = await link.fetch(leases.lock(self._key))
        return self._locked

    async def leave(self, link: Link) -> None:
        """Releases the lock, if it is ours: the session may be used for other work."""
        if self._locked:
            self._locked = False
            await link.fetch(leases.unlock(self._key))

    async def _acquire(
        self, link: Link, holder: str, duties: list[Duty], ttl: float, *, forced: bool = False
    ) -> tuple[list[Term], float | None]:
        query = leases.acquire(holder, [(duty.name, ttl) for duty in duties], self._whereabouts, forced=forced)
        [row] = await link.fetch(query)
        return [Term(name, holder, term, ttl) for name, term in json.loads(row.won).items()], row.free_in
