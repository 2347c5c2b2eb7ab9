"""Strategies that decide which process does a duty.

`lease`: a process that finds a duty free takes its row, and keeps it as long as it sends heartbeats.
`shared`: every process does the duties that work on batches of locked rows; the others are assigned as with `lease`. For
development, and for clusters so large that one process cannot keep up.
`advisory`: the holder of one session lock does all duties. The server releases the lock as soon as the session ends.

With every strategy the row in `leases` decides: each write of a duty checks its term there.
"""

from __future__ import annotations

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
"""The holder of duties that all processes share."""

LONGEST_WAIT = 10.0

LOCK_INTERVAL = (0.5, 2.0)
"""Seconds between two attempts of a candidate to take the lock."""

LOCK_CANDIDATES = 16
"""Up to this number of candidates each uses `LOCK_INTERVAL`. With more, each tries less often, and the total rate is the same."""


@dataclass(frozen=True, slots=True)
class ElectionResult:
    terms: list[Term]
    retry_in: float
    """Seconds."""


class Election:
    def __init__(self, database: DatabaseTarget, holder: str, settings: LeaderSettings, process: Mapping[str, object]) -> None:
        strategy = settings.strategy
        if strategy not in STRATEGIES:
            raise ConfigError(f"leader.strategy is {strategy!r}: use one of {', '.join(STRATEGIES)}")
        if strategy == "advisory" and database.pooled:
            raise ConfigError(
                "leader.strategy 'advisory' needs its own session, which a transaction pooler does not provide: "
                "use 'lease', or set a dsn that connects to PostgreSQL directly"
            )
        self._holder = holder
        self._strategy = strategy
        self._ttl = settings.term
        self._locked = False
        self._process = {**process, "strategy": strategy}
        self._key = zlib.crc32(database.schema.encode()) | 0x7E9 << 32

    @property
    def uses_lock(self) -> bool:
        return self._strategy == "advisory"

    def is_shared(self, duty: Duty) -> bool:
        return self._strategy == "shared" and duty.divisible

    async def acquire(self, link: Link, duties: Iterable[Duty], *, candidates: int = 1) -> ElectionResult:
        """Tries once to acquire these duties. `candidates`: about how many processes try."""
        alone = [duty for duty in duties if not self.is_shared(duty)]
        together = [duty for duty in duties if self.is_shared(duty)]
        if not await self.may_lead(link):
            # The lock is free as soon as its session ends, without a notification, so candidates try often.
            return ElectionResult([], random.uniform(*LOCK_INTERVAL) * max(1.0, candidates / LOCK_CANDIDATES))  # noqa: S311
        terms, free_in = await self._acquire(link, self._holder, alone, self._ttl, forced=self.uses_lock) if alone else ([], None)
        if together:
            terms += (await self._acquire(link, SHARED, together, SHARED_TTL))[0]
        # Shortly after the leases of others may have expired, and not all candidates at the same time.
        wait = LONGEST_WAIT if free_in is None else max(0.0, min(LONGEST_WAIT, free_in))
        return ElectionResult(terms, wait + random.uniform(0.1, 1.0))  # noqa: S311

    async def may_lead(self, link: Link) -> bool:
        """With `advisory`, whether this session holds the lock; a broken session has lost it. Otherwise true."""
        if not self.uses_lock:
            return True
        [self._locked] = await link.fetch(leases.lock(self._key))
        return self._locked

    async def release_lock(self, link: Link) -> None:
        """Releases the lock if this session holds it: the session may be used for other work."""
        if self._locked:
            self._locked = False
            await link.fetch(leases.unlock(self._key))

    async def _acquire(
        self, link: Link, holder: str, duties: list[Duty], ttl: float, *, forced: bool = False
    ) -> tuple[list[Term], float | None]:
        query = leases.acquire(holder, [(duty.name, ttl) for duty in duties], self._process, forced=forced)
        [row] = await link.fetch(query)
        return [Term(name, holder, term, ttl) for name, term in row.won.items()], row.free_in
