"""A duty that this process holds: until when by its own clock, and the record of its rounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tenure.leader.duties.duty import RoundResult
from tenure.periodic import boottime
from tenure.store.leases import LeaseHeartbeat, Term

MARGIN = 1.0
"""Seconds before the end of its term at which a holder stops acting: clocks differ, and a statement takes time."""


class HeldTerm:
    """A term, until when the holder may act on it, and the record of its rounds since the last heartbeat."""

    def __init__(self, term: Term, asked_at: float) -> None:
        self.term = term
        self.since = asked_at
        # A lease that was already held is renewed only when half of it is over, so only half of it is certain.
        self._until = asked_at + term.ttl / 2
        self._limit: asyncio.Timeout | None = None
        self._began: float | None = None
        self._ended: float | None = None
        self._next_at: float | None = None
        self._record = self._new_record()

    @property
    def left(self) -> float:
        """Seconds for which the holder may still act."""
        return self._until - MARGIN - boottime()

    @property
    def round_age(self) -> float:
        """Seconds since the current round started; 0 between rounds."""
        return 0.0 if self._began is None else boottime() - self._began

    def renewed(self, asked_at: float) -> None:
        self._until = asked_at + self.term.ttl
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time() + self.left)

    @asynccontextmanager
    async def round(self) -> AsyncIterator[None]:
        """Raises TimeoutError in the round when the term ends."""
        self._began = boottime()
        try:
            async with asyncio.timeout(max(0.0, self.left)) as self._limit:
                yield
        except Exception as error:
            self._record.errors += 1
            self._record.last_error = f"{type(error).__name__}: {error}"[:500]
            raise
        finally:
            self._record.seconds += self.round_age
            self._record.last_seconds = round(self.round_age, 4)
            self._ended, self._began, self._limit = boottime(), None, None

    def completed(self, report: RoundResult) -> None:
        self._record.runs += 1
        self._record.items += report.touched
        self._record.findings = list(report.findings)
        self._next_at = self._ended + report.rest if self._ended is not None else None

    def take_record(self) -> LeaseHeartbeat:
        """What happened since the last heartbeat. Sent once: if the connection breaks, only these figures are lost."""
        record, self._record = self._record, self._new_record()
        record.ago = None if self._ended is None else boottime() - self._ended
        record.next = None if self._next_at is None else self._next_at - boottime()
        return record

    def _new_record(self) -> LeaseHeartbeat:
        return LeaseHeartbeat(name=self.term.duty, term=self.term.term, ttl=self.term.ttl)
