"""The only writer of outcomes: in groups, immediately when idle, together under load."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator

from tenure.model.errors import StoreUnavailable
from tenure.outages import failures
from tenure.periodic import FOREVER, PeriodicTask
from tenure.store import claims, jobs
from tenure.store.faults import FailedInside, Refused, StatementTimeout
from tenure.store.groups import send_or_halve
from tenure.store.jobs import MovedRow, SettledRow
from tenure.store.link import Link
from tenure.store.query import Query
from tenure.worker.run import settlement as settlements
from tenure.worker.run.run import Run
from tenure.worker.run.settlement import Settlement, Way, as_array, settling

log = logging.getLogger("tenure")

Written = SettledRow | MovedRow


LARGEST_GROUP = 1000

REWRITES = 5
"""How often an outcome is written again at once if the statement did not find a job that this worker still holds."""

PARKED = 30.0
"""Seconds until an outcome that PostgreSQL refuses in every form is sent again."""

LOCK_TIMEOUT = 2.0
"""Seconds for which a group waits for locks. Then the rows that are not locked are written."""

LOCKED_AGAIN = 1.0
"""Seconds until an outcome whose row was locked is sent again."""

SKIPPING_FOR = 10.0
"""Seconds after a lock timeout during which locked rows are left out from the start."""

POOLED_LIMIT = 30.0
"""Behind a pooler a session has no lock timeout of ours: there the worker cancels any statement on the connection that settles
after this many seconds, so that no lock holds up its outcomes for as long as it is held."""

POOLED_LOCK_TIMEOUT = 5.0
"""Seconds after which a group that may wait for locks is canceled behind a pooler, where waiting cannot be told from working. A
group without its locked rows has `POOLED_LIMIT` seconds, so a server that is only slow writes it."""


class Settler:
    """Keeps every settlement until PostgreSQL has answered for it.

    `lost(settlement)` is called for each run that no longer held its job, `settled(settlement, watched)` for the others.
    """

    def __init__(
        self,
        link: Link,
        settled: Callable[[Settlement, bool], None],
        lost: Callable[[Settlement], None],
        before: Callable[[list[Run]], Awaitable[None]],
        freed: Callable[[], None],
    ) -> None:
        """`before(runs)` writes what these runs have reported: once they are settled, it would be rejected. `freed()` is called
        when outcomes were written."""
        self._link = link
        self._before = before
        self._settled = settled
        self._lost = lost
        self._freed = freed
        self._waiting: list[Settlement] = []
        self._in_flight: list[Settlement] = []
        self._parked: list[Settlement] = []
        self._locked: set[int] = set()
        self._moved_on = asyncio.Event()
        self._unsure = False
        self._skipping_until = 0.0
        self.task = PeriodicTask("settler", self._turn)

    @property
    def backlog(self) -> int:
        """Outcomes that can be written as soon as PostgreSQL answers."""
        return len(self._waiting) + len(self._in_flight)

    @property
    def unwritten(self) -> int:
        """All outcomes that are not written yet."""
        return self.backlog + len(self._parked)

    def add(self, settlement: Settlement) -> None:
        self._waiting.append(settlement)
        if len(self._waiting) == 1:
            self.task.wake()

    @property
    def runs(self) -> Iterator[Run]:
        """Runs whose outcome is not written yet."""
        return (settlement.run for settlement in (*self._waiting, *self._in_flight, *self._parked))

    async def written(self) -> None:
        """Returns when nothing is left that PostgreSQL accepts."""
        while self.backlog or self._locked:
            self._moved_on.clear()
            await self._moved_on.wait()

    async def _turn(self) -> float:
        try:
            return await self._write()
        finally:
            self._moved_on.set()

    async def _write(self) -> float:
        if not self._in_flight:
            self._in_flight, later = _one_of_each_job(self._waiting[:LARGEST_GROUP])
            self._waiting = later + self._waiting[LARGEST_GROUP:]
        await self._before([s.run for s in self._in_flight if s.run.updates is not None])
        for group in _by_way(self._in_flight):
            await send_or_halve(group, self._send, self._refused)
        self._unsure = False
        return 0.0 if self._waiting else FOREVER

    async def _send(self, group: list[Settlement]) -> None:
        written, skipped = await self._write_free(group)
        if len(written) == len(group):
            self._in_flight = [s for s in self._in_flight if s.run.job_id not in written]
            for settlement in group:
                self._report_written(settlement, written[settlement.run.job_id])
        else:
            await self._send_again(group, written, skipped)
        self._freed()

    async def _send_again(self, group: list[Settlement], written: dict[str, Written], skipped: set[int]) -> None:
        """Some rows of the group were not found: they are held and will be written, or were written before, or are lost."""
        stuck: list[Settlement] = []
        if missing := [s for s in group if s.run.job_id not in written and id(s) not in skipped]:
            # From here on, a row that is not found may have been written by the statement above.
            self._unsure, unsure = True, self._unsure
            stuck = await self._write_again(missing, written)
            self._unsure = unsure
        left = set(map(id, stuck))
        missing = [s for s in missing if s.run.job_id not in written and id(s) not in left]
        before = await self._written_before(missing) if self._in_question(missing) else {}
        answered = set(map(id, group)) - left
        self._in_flight = [s for s in self._in_flight if id(s) not in answered]
        for settlement in group:
            if id(settlement) in skipped:
                self._locked.add(id(settlement))
                self._park(settlement, LOCKED_AGAIN)
            elif id(settlement) in answered:
                self._answer(settlement, written, before)
        for settlement in stuck:
            await self._refused(
                settlement, Refused("the row is not written, and no error is raised: does a trigger suppress it?")
            )

    async def _write_free(self, group: list[Settlement]) -> tuple[dict[str, Written], set[int]]:
        """What was written, and (by `id`) what is still held but was left out: another session has locked the row, as
        `cancel(conn=...)` does, and the others must not wait for that transaction."""
        if time.monotonic() >= self._skipping_until:
            try:
                within = POOLED_LOCK_TIMEOUT if self._link.database.pooled else None
                return await self._fetch(settling(group), within=within), set()
            except StoreUnavailable as error:
                if not _is_locked(error):
                    raise
        written = await self._fetch(settling(group, skipping=True))
        missing = [s for s in group if s.run.job_id not in written]
        lost = await self._lost_among(missing)
        skipped = {id(s) for s in missing if (s.run.job_id, s.run.claim_id) not in lost}
        if skipped or time.monotonic() >= self._skipping_until:
            self._skipping_until = time.monotonic() + SKIPPING_FOR
        return written, skipped

    async def _fetch(self, query: Query[Written], *, within: float | None = None) -> dict[str, Written]:
        """The jobs that were settled."""
        try:
            # Urgent: a hundred workflows may wait to send one statement each, and an outcome that is written frees a slot.
            return {row.id: row for row in await self._link.fetch(query, within=within, urgent=True)}
        except (Refused, FailedInside):
            raise
        except BaseException as error:
            # It may have been committed, except after a lock timeout: from now on, a missing row may be our own doing.
            if getattr(error, "cause", "") != "lock":
                self._unsure = True
            raise

    async def _write_again(self, missing: list[Settlement], written: dict[str, Written]) -> list[Settlement]:
        """Settling finds the row by its ctid, which a concurrent heartbeat may have changed: then the job is still held, and is
        found at the next try. Returns those that are held and cannot be written."""
        for _ in range(REWRITES):
            lost = await self._lost_among(missing)
            missing = [s for s in missing if (s.run.job_id, s.run.claim_id) not in lost]
            if missing:
                written |= await self._fetch(settling(missing))
            missing = [s for s in missing if s.run.job_id not in written]
            if not missing:
                break
        return missing

    async def _lost_among(self, settlements: list[Settlement]) -> set[tuple[str, str]]:
        """Those whose job this worker no longer holds: job and claim."""
        rows = await self._link.fetch(claims.check(as_array(settlements))) if settlements else []
        return {(row.id, row.claim_id) for row in rows}

    def _in_question(self, missing: list[Settlement]) -> bool:
        return bool(missing) and (self._unsure or any(s.instead_of is not None for s in missing))

    async def _written_before(self, missing: list[Settlement]) -> dict[str, Settlement]:
        """What was settled by an earlier, unanswered sending, or by the handler's own transaction. A move leaves no trace of
        its claim, but the run has ended either way."""
        moved = {s.run.job_id: s for s in missing if self._unsure and not s.finishing and not s.run.loss_reported}
        finished = set(await self._link.fetch(jobs.find_settled(as_array(missing))))
        return moved | {s.run.job_id: s.instead_of or s for s in missing if s.run.job_id in finished}

    def _report_written(self, settlement: Settlement, row: Written) -> None:
        if isinstance(row, MovedRow):
            settlement.state, settlement.error = row.state, row.error
        settlement.dependants = row.dependants
        self._settled(settlement, row.watched)

    def _answer(self, settlement: Settlement, written: dict[str, Written], before: dict[str, Settlement]) -> None:
        job_id = settlement.run.job_id
        if job_id in written:
            self._report_written(settlement, written[job_id])
        elif job_id in before:
            self._settled(before[job_id], True)  # whether a client watches is not known
        else:
            self._lost(settlement)

    async def _refused(self, settlement: Settlement, error: Refused) -> None:
        """PostgreSQL refuses this outcome: the job fails instead. If even that is refused, it is tried again later."""
        if error.is_configuration:
            failures.failed("settler", error)
        if error.is_configuration or settlement.in_place_of_refused:
            self._park(settlement, PARKED)
            return
        fields = {**settlement.run.log_fields, "sqlstate": error.sqlstate, "error": str(error)}
        log.error("the outcome of a job was refused by PostgreSQL", extra=fields)
        failed = settlements.of_error(settlement.run, ValueError(f"PostgreSQL refused the outcome: {error}"))
        failed.in_place_of_refused = True
        self._in_flight = [failed if s is settlement else s for s in self._in_flight]
        try:
            await self._send([failed])
        except (Refused, FailedInside):
            fields = {**settlement.run.log_fields, "retry_in": PARKED}
            log.exception("the failure of a job whose outcome was refused is refused as well; retrying", extra=fields)
            self._park(failed, PARKED)

    def _park(self, settlement: Settlement, seconds: float) -> None:
        """Nothing can be written about this job now. It stays held, and does not delay others."""
        self._in_flight = [s for s in self._in_flight if s is not settlement]
        self._parked.append(settlement)
        asyncio.get_running_loop().call_later(seconds, self._unpark, settlement)

    def _unpark(self, settlement: Settlement) -> None:
        self._parked = [s for s in self._parked if s is not settlement]
        self._locked.discard(id(settlement))
        self.add(settlement)


def _by_way(settlements: list[Settlement]) -> list[list[Settlement]]:
    """Those that one statement writes, together. Nearly always all of them finish."""
    groups: dict[Way, list[Settlement]] = {}
    for settlement in settlements:
        groups.setdefault(settlement.way, []).append(settlement)
    return list(groups.values())


def _one_of_each_job(settlements: list[Settlement]) -> tuple[list[Settlement], list[Settlement]]:
    """The first settlement of each job, and the others. A worker may have claimed a job again that one of its runs had lost: the
    statement answers with the ids of jobs, so in one group both runs would be taken for settled."""
    first = {s.run.job_id: s for s in reversed(settlements)}
    if len(first) == len(settlements):
        return settlements, []
    return list(reversed(first.values())), [s for s in settlements if first[s.run.job_id] is not s]


def _is_locked(error: StoreUnavailable) -> bool:
    return error.cause == "lock" or isinstance(error, StatementTimeout)
