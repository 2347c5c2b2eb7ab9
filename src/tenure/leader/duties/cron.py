"""Records the planned times of schedules, and enqueues their jobs."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from tenure.leader.declaring import RETIRED
from tenure.leader.duties.duty import RoundResult, TermOver
from tenure.leader.duties.parts import Parts
from tenure.leader.reporting import Reporting
from tenure.model.errors import ConfigError
from tenure.model.events import ScheduleTicked
from tenure.model.schedules import Schedule
from tenure.model.ticks import ScheduleMove, decide, move_of
from tenure.model.wakeup import Wakeup
from tenure.periodic import boottime
from tenure.store import leases, schedules
from tenure.store.cleaning import CleanedRow
from tenure.store.faults import Refused
from tenure.store.groups import send_or_halve
from tenure.store.isolation import AGAIN_AFTER, MOST_REMEMBERED, RefusedRows
from tenure.store.leases import ClockRow, Term
from tenure.store.link import Link
from tenure.store.query import Pick
from tenure.store.schedules import DueSchedule, RecordedTick, ReleasedRow, RetiredRow, RewoundRow

log = logging.getLogger("tenure")
ticks_log = logging.getLogger("tenure.schedules")

CLOCK_TOLERANCE = 5.0
"""Seconds by which the server's clock may lag between two rounds."""

MISSED = "planned times of a schedule were missed, because no leader recorded them in time"
SKIPPED = "planned time of a schedule was skipped, because an earlier job of it is live"
DROPPED = "queued time of a schedule was skipped, because the schedule is deleted or retired"


class Cron:
    """Reads the due schedules, decides here, and writes the result in one statement that names the version that was read: a
    process that was suspended meanwhile, is no longer the leader, or repeats what is already done writes nothing."""

    name = "cron"
    wakes_on = (Wakeup.schedule_changed(),)
    divisible = False
    batch = 200
    longest_rest = 15.0
    """A change of a schedule sends a notification."""
    queued_rest = 1.0
    """While ticks wait for an earlier job to end, for which there is no notification."""
    clean_every = 600.0
    clean_batch = 2000
    verify_every = 60.0
    """Seconds between two searches for schedules that no running code declares, or whose times are ahead of the clock."""
    again = 20.0
    """Seconds until that, or the cleaning, is retried after a failure: it may wait for a lock each time."""

    def __init__(self, keep: float, reporting: Reporting | None = None) -> None:
        self._keep = keep
        self._reporting = reporting or Reporting()
        self._clean_at = self._verify_at = 0.0
        self._clock: tuple[datetime, float] | None = None
        self._clock_set_back = True  # it may have happened before this process started
        self._broken: dict[str, float] = {}
        """Versions of schedules that failed, and when to retry them."""
        self._unreleased = RefusedRows("to enqueue a queued time of a schedule", "schedule")
        self._uncleaned = RefusedRows("to delete a row of tenure.ticks", "ctid")
        self._ahead = RefusedRows("to change a row that was written while the server's clock was ahead", "row")
        self._unrewound = RefusedRows("to plan a schedule again from now on", "schedule")
        self._unretired = RefusedRows("to retire a schedule", "schedule")

    async def run_once(self, link: Link, term: Term, *, now: datetime | None = None) -> RoundResult:
        parts = Parts()
        try:
            query = schedules.find_due(term, limit=self.batch, skipped=self._skipped(), now=now)
            [due] = await link.fetch(query)
            _require_term(due.holds)
            self._watch_clock(due.now)
            moves = [move for given in due.schedules if (move := self._move(given, due.now)) is not None]
            touched = await self._record(link, term, moves, now) if moves else 0
            # Planned times are recorded even if the rest fails, which may need other tables.
            if due.queued:
                touched += await parts.do("release", lambda: self._release(link, term, now)) or 0
            await self._verify(link, term, now, parts)
            await parts.do("clean", lambda: self._clean(link, term, now))
        except TermOver:
            return RoundResult(holds=False)
        parts.raise_first()
        return RoundResult(holds=True, touched=touched, rest=self._rest(moves, due.next_due, queued=due.queued))

    def _rest(self, moves: list[ScheduleMove], next_due: float | None, *, queued: bool) -> float:
        if moves:  # each schedule now has its next time, which may be due already
            return 0.0
        longest = self.queued_rest if queued else self.longest_rest
        return longest if next_due is None else min(longest, max(0.0, next_due))

    def _move(self, given: DueSchedule, now: datetime) -> ScheduleMove | None:
        """What to write for this schedule. One whose times cannot be computed must not block the others."""
        try:
            schedule = _schedule(given)
            decision = decide(schedule, datetime.fromisoformat(given.since), now)
        except (ConfigError, ArithmeticError, ValueError) as error:
            self._log_broken(given.name, given.version, error)
            return None
        return move_of(given.name, given.version, schedule, decision)

    async def _record(self, link: Link, term: Term, moves: list[ScheduleMove], now: datetime | None) -> int:
        """How many jobs were enqueued."""
        total = 0
        listing = self._reporting.events.wants(ScheduleTicked)

        async def send(group: list[ScheduleMove]) -> None:
            nonlocal total
            query = schedules.record_ticks(term, group, listing=listing, now=now)
            [recorded] = await link.fetch(query)
            _require_term(recorded.holds)
            total += recorded.enqueued
            for move in group:
                self._broken.pop(move.version, None)
            self._announce(recorded.queues, recorded.ticks, scheduled=recorded.scheduled)

        async def refused(move: ScheduleMove, error: Refused) -> None:
            self._log_broken(move.name, move.version, error)

        await send_or_halve(moves, send, refused)
        return total

    async def _release(self, link: Link, term: Term, now: datetime | None) -> int:
        listing = self._reporting.events.wants(ScheduleTicked)

        async def send(pick: Pick) -> ReleasedRow:
            [answer] = await link.fetch(schedules.release_ticks(term, limit=self.batch, listing=listing, pick=pick, now=now))
            _require_term(answer.holds)
            if not pick.peek:
                self._announce(answer.queues, answer.ticks, skipped=DROPPED)
            return answer

        return sum(answer.enqueued for answer in await self._unreleased.run(send))

    async def _clean(self, link: Link, term: Term, now: datetime | None) -> None:
        if time.monotonic() < self._clean_at:
            return
        self._clean_at = time.monotonic() + self.again

        async def send(pick: Pick) -> CleanedRow:
            [answer] = await link.fetch(schedules.clean_ticks(term, limit=self.clean_batch, keep=self._keep, pick=pick, now=now))
            _require_term(answer.holds)
            return answer

        removed = sum(answer.removed for answer in await self._uncleaned.run(send))
        self._clean_at = 0.0 if removed >= self.clean_batch else time.monotonic() + self.clean_every

    async def _verify(self, link: Link, term: Term, now: datetime | None, parts: Parts) -> None:
        if time.monotonic() < self._verify_at:
            return
        self._verify_at = time.monotonic() + self.again
        if self._clock_set_back:
            await parts.do("follow clock", lambda: self._follow_clock(link, term, now))
        await parts.do("rewind", lambda: self._rewind(link, term, now))
        await parts.do("retire", lambda: self._retire(link, term))
        if not parts.failures.keys() & {"follow clock", "rewind", "retire"}:
            self._verify_at = time.monotonic() + self.verify_every

    async def _follow_clock(self, link: Link, term: Term, now: datetime | None) -> None:
        async def send(pick: Pick) -> ClockRow:
            [answer] = await link.fetch(leases.follow_clock(term, pick=pick, now=now))
            _require_term(answer.holds)
            return answer

        answers = await self._ahead.run(send)
        workers, jobs, starts = (sum(counts) for counts in zip(*((a.workers, a.jobs, a.starts) for a in answers), strict=True))
        if workers or jobs or starts:
            fields = {"workers": workers, "jobs": jobs, "starts": starts}
            log.warning("the server's clock was set back; leases and rate limits were adjusted", extra=fields)
        self._clock_set_back = self._ahead.leaves_out

    async def _rewind(self, link: Link, term: Term, now: datetime | None) -> None:
        async def send(pick: Pick) -> RewoundRow:
            [answer] = await link.fetch(schedules.rewind(term, pick=pick, now=now))
            _require_term(answer.holds)
            if not pick.peek:
                for name in answer.names:
                    text = "schedule planned again from now on, because the server's clock was ahead"
                    ticks_log.warning(text, extra={"schedule": name})
            return answer

        await self._unrewound.run(send)

    async def _retire(self, link: Link, term: Term) -> None:
        async def send(pick: Pick) -> RetiredRow:
            [answer] = await link.fetch(schedules.retire(term, pick=pick))
            _require_term(answer.holds)
            if not pick.peek:
                for one in answer.retired:
                    log.info(RETIRED, extra={"schedule": one.name, "app": one.owner})
            return answer

        await self._unretired.run(send)

    def _watch_clock(self, clock: datetime) -> None:
        """If the server's clock has fallen behind the local one by seconds, it was set back: rows with times in the future are
        corrected at once."""
        before, self._clock = self._clock, (clock, boottime())
        if before is not None and (clock - before[0]).total_seconds() < self._clock[1] - before[1] - CLOCK_TOLERANCE:
            self._clock_set_back = True
            self._verify_at = 0.0

    def _announce(
        self, queues: Sequence[str], ticks: Sequence[RecordedTick], *, scheduled: bool = False, skipped: str = SKIPPED
    ) -> None:
        for queue in queues:
            self._reporting.notify(Wakeup.new_jobs(queue))
        if scheduled:
            self._reporting.notify(Wakeup.job_scheduled())
        for tick in ticks:
            self._log_tick(tick, skipped)
            if self._reporting.events.wants(ScheduleTicked):
                self._reporting.events.emit(_event(tick))

    def _log_tick(self, tick: RecordedTick, skipped: str) -> None:
        """A planned time for which no job was enqueued."""
        fields = {"schedule": tick.schedule, "planned_at": tick.planned_at.isoformat(), "times": tick.times}
        if tick.outcome == "missed":
            ticks_log.log(self._reporting.schedule_missed_level, MISSED, extra=fields)
        elif tick.outcome == "skipped":
            ticks_log.log(self._reporting.schedule_skipped_level, skipped, extra=fields)

    def _skipped(self) -> list[str]:
        now = time.monotonic()
        return [version for version, again_at in self._broken.items() if again_at > now]

    def _log_broken(self, name: str, version: str, error: Exception) -> None:
        """Once for each version. It is retried after some minutes: the cause may be temporary."""
        if version not in self._broken:
            fields = {"schedule": name, "error": str(error), "retry_in": AGAIN_AFTER}
            ticks_log.error("schedule failed; retrying until it is changed or deleted", extra=fields)
        self._broken.pop(version, None)
        self._broken[version] = time.monotonic() + AGAIN_AFTER
        if len(self._broken) > MOST_REMEMBERED:
            del self._broken[next(iter(self._broken))]


def _require_term(holds: bool) -> None:
    if not holds:
        raise TermOver


def _event(tick: RecordedTick) -> ScheduleTicked:
    return ScheduleTicked(
        schedule=tick.schedule,
        planned_at=tick.planned_at,
        outcome=tick.outcome,
        times=tick.times,
        until=tick.until,
        job_id=tick.job_id,
    )


def _schedule(given: DueSchedule) -> Schedule:
    """Only what decides its times: the options of its jobs are read by the statement."""
    return Schedule(
        name=given.name,
        kind=given.kind,
        cron=given.cron,
        every=None if given.every is None else timedelta(seconds=given.every),
        timezone=given.timezone,
        overlap=given.overlap,
        catch_up=given.catch_up,
        catch_up_limit=given.catch_up_limit,
        jitter=timedelta(seconds=given.jitter),
    )
