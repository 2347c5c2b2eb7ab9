"""Creates the partitions of the history ahead of time, drops the old ones, and deletes rows that depend on them.

The parts are independent: a table that is locked, or a row that PostgreSQL rejects the deletion of, does not stop the others.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeVar
from uuid import UUID

from tenure.leader.duties.duty import RoundResult, TermOver
from tenure.leader.duties.parts import Parts
from tenure.model.findings import Finding
from tenure.store import cleaning, history
from tenure.store.cleaning import CleanedKeysRow, CleanedRow, WalkedRow
from tenure.store.duty_link import Contended
from tenure.store.history import CleanedHistoryRow
from tenure.store.isolation import RefusedRows
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.query import Pick, Query

log = logging.getLogger("tenure")

Cleaned = CleanedRow | CleanedHistoryRow
Clean = Callable[[Pick], Query[Cleaned]]
Answer = TypeVar("Answer", CleanedKeysRow, WalkedRow, Cleaned)
T = TypeVar("T")

_ROW_NAMES = {"audit": "id", "history": "id", "blocked": "job_id", "chain_endings": "chain_id"}
"""By table: what identifies a row in the log; its ctid otherwise."""

QUIET_ATTEMPTS = 10
"""Attempts in a row without a lock after which it becomes a finding."""


class Cleaner:
    name = "cleaner"
    wakes_on = ()
    divisible = False
    again = 60.0
    """Seconds until a part that failed or did not get its lock is retried."""
    days_ahead = 7
    batch = 2000
    keep_counts = 90 * 86400.0

    def __init__(
        self,
        keep: float,
        keep_dead: float,
        *,
        keep_events: float = 7 * 86400.0,
        keep_audit: float = 365 * 86400.0,
        every: float = 1200.0,
    ) -> None:
        self._keep, self._keep_dead, self._keep_events, self._keep_audit = keep, keep_dead, keep_events, keep_audit
        self.every = every
        self._keys_after: tuple[str, str] | None = None
        self._walked_to: dict[str, UUID | None] = {}
        """By table: where to continue."""
        self._refused: dict[str, RefusedRows] = {}
        self._failing: dict[str, int] = {}

    async def run_once(self, link: Link, term: Term) -> RoundResult:
        parts = Parts()
        # Partitions first: old ones, then new ones.
        works: list[tuple[str, Callable[[], Awaitable[int]]]] = [
            ("old partitions of tenure.history", partial(self._drop, link, term)),
            ("new partitions of tenure.history", partial(self._make, link, term)),
            ("tenure.keys", partial(self._clean_keys, link, term)),
            ("tenure.blocked", partial(self._walk, link, term, "blocked", cleaning.clean_blocked)),
            ("tenure.chain_endings", partial(self._walk, link, term, "chain_endings", cleaning.clean_endings)),
            *((f"tenure.{table}", partial(self._clean, link, table, query)) for table, query in self._queries(term).items()),
        ]
        try:
            done = [await parts.do(name, work) or 0 for name, work in works]
        except TermOver:
            return RoundResult(holds=False)
        findings = self._report(parts.failures)
        rest = 0.0 if max(done) >= self.batch else min(self.again, self.every) if parts.failures else self.every
        return RoundResult(holds=True, touched=sum(done), rest=rest, findings=findings)

    def _queries(self, term: Term) -> dict[str, Clean]:
        """By table."""
        keep, keep_counts, limit = self._keep, max(self._keep, self.keep_counts), self.batch
        return {
            "progress": lambda pick: cleaning.clean_progress(term, limit=limit, keep=keep, pick=pick),
            "logs": lambda pick: cleaning.clean_logs(term, limit=limit, keep=keep, pick=pick),
            "incidents": lambda pick: cleaning.clean_incidents(term, limit=limit, keep=keep, pick=pick),
            "steps": lambda pick: cleaning.clean_steps(term, limit=limit, keep=keep, pick=pick),
            "events": lambda pick: cleaning.clean_events(term, limit=limit, keep=self._keep_events, pick=pick),
            "audit": lambda pick: cleaning.clean_audit(term, limit=limit, keep=self._keep_audit, pick=pick),
            "waits": lambda pick: cleaning.clean_waits(term, limit=limit, pick=pick),
            "watches": lambda pick: cleaning.clean_watches(term, limit=limit, pick=pick),
            "counters": lambda pick: cleaning.clean_counters(term, limit=limit, keep=keep_counts, pick=pick),
            "minutes": lambda pick: cleaning.clean_minutes(term, limit=limit, pick=pick),
            "fleet_minutes": lambda pick: cleaning.clean_fleet_minutes(term, limit=limit, pick=pick),
            "latencies": lambda pick: cleaning.clean_latencies(term, limit=limit, keep=keep_counts, pick=pick),
            "jobs": lambda pick: cleaning.clean_dead(term, limit=limit, keep=self._keep_dead, pick=pick),
            "history": lambda pick: history.clean(term, limit=limit, keep=keep, pick=pick),
            "history_default": lambda pick: history.clean_default(term, limit=limit, keep=keep, pick=pick),
        }

    async def _drop(self, link: Link, term: Term) -> int:
        dropped = 0
        while name := _only(await link.fetch(history.drop(term, keep=self._keep))):
            log.info("history partition dropped", extra={"partition": name})
            dropped += 1
        return dropped

    async def _make(self, link: Link, term: Term) -> int:
        made = _only(await link.fetch(history.make(term, days_ahead=self.days_ahead)))
        if made:
            log.info("history partitions created", extra={"partitions": made})
        return made

    async def _clean_keys(self, link: Link, term: Term) -> int:
        def query(pick: Pick) -> Query[CleanedKeysRow]:
            return cleaning.clean_keys(term, limit=self.batch, after=self._keys_after, pick=pick)

        answers = await self._run(link, "keys", query)
        kind, key = answers[-1].next_kind, answers[-1].next_key
        self._keys_after = None if kind is None or key is None else (kind, key)
        # There are more keys to check, even if few of these could be deleted.
        removed = max(sum(answer.expired for answer in answers), sum(answer.freed for answer in answers))
        return self.batch if self._keys_after else removed

    async def _walk(self, link: Link, term: Term, table: str, query: Callable[..., Query[WalkedRow]]) -> int:
        """A batch of a table whose rows are all checked in turn."""
        after = self._walked_to.get(table)
        answers = await self._run(link, table, lambda pick: query(term, limit=self.batch, after=after, pick=pick))
        self._walked_to[table] = answers[-1].next
        return self.batch if answers[-1].next else sum(answer.removed for answer in answers)

    async def _clean(self, link: Link, table: str, query: Clean) -> int:
        """The largest of the numbers of deleted rows: a full batch means that there are more."""
        answers = await self._run(link, table, query)
        by_sort: Iterable[tuple[int, ...]] = zip(*map(_removed, answers), strict=True)
        return max(map(sum, by_sort))

    async def _run(self, link: Link, table: str, query: Callable[[Pick], Query[Answer]]) -> list[Answer]:
        async def send(pick: Pick) -> Answer:
            [answer] = await link.fetch(query(pick))
            if not answer.holds:
                raise TermOver
            return answer

        return await self._refused.setdefault(
            table, RefusedRows(f"to delete a row of tenure.{table}", _ROW_NAMES.get(table, "ctid"))
        ).run(send)

    def _report(self, failures: dict[str, Exception]) -> list[Finding]:
        """The failures for operators: logged when they begin, and stored with the lease while they last."""
        findings = []
        self._failing = {name: self._failing.get(name, 0) + 1 for name in failures}
        for name, error in failures.items():
            contended = isinstance(error, Contended)
            if self._failing[name] == 1:
                level = logging.INFO if contended else logging.ERROR
                fields = {"part": name, "error": str(error), "retry_in": self.again}
                log.log(level, "cleaner: part failed; retrying", extra=fields)
            # A table that is locked for some minutes needs no attention.
            if not contended or self._failing[name] > QUIET_ATTEMPTS:
                way_out = "the cleaner tries again after a minute; if this remains, remove the cause: its log has the error"
                findings.append(Finding("not_cleaned", f"{name} cannot be cleaned: {error}", way_out, about=name))
        return findings


def _removed(answer: Cleaned) -> tuple[int, ...]:
    return (answer.removed,) if isinstance(answer, CleanedRow) else (answer.removed_own, answer.removed_others)


def _only(rows: list[T]) -> T:
    if not rows:
        raise TermOver
    return rows[0]
