"""Takes part in the election for every duty, and does those it won."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from uuid import uuid4

from tenure.leader.duties.duty import Duty
from tenure.leader.duties.reaper import Contact
from tenure.leader.duties.registry import DutyContext, create_duties
from tenure.leader.election import SHARED, SHARED_TTL, Election
from tenure.leader.links import DutyLinks
from tenure.leader.reporting import Reporting
from tenure.leader.settings import LeaderSettings
from tenure.leader.terms import HeldTerm
from tenure.model.errors import StoreUnavailable
from tenure.model.event_bus import Events
from tenure.model.events import LeaderDeposed, LeaderElected
from tenure.model.wakeup import Wakeup
from tenure.periodic import FOREVER, PeriodicTask, boottime
from tenure.store import leases
from tenure.store.duty_link import Contended
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget

log = logging.getLogger("tenure")

HANDOVER_PAUSE = 3.0
"""Seconds for which a holder that handed over a duty does not try to acquire it again."""

CANDIDATES_WOKEN = 8
"""About this many candidates try to acquire a duty when it is announced as free; the others wait for their next renewal."""

SPREAD = 0.02
"""Seconds per candidate over which the attempts are spread: each attempt needs a connection."""

ELECTION_PATIENCE = 2.0
"""Seconds for which the shutdown waits for an election that is running."""

RELEASE_PATIENCE = 2.0
"""Seconds for which a release waits for a running statement of the duty."""

STALLED = 60.0
"""Seconds. A leader whose round takes longer loses that duty: it may hang, although the heartbeat continues."""


class Leader:
    """`start()` returns at once; `stop()` releases every duty, so that another process can take over without waiting."""

    def __init__(
        self,
        database: DatabaseTarget,
        settings: LeaderSettings | None = None,
        *,
        holder: str | None = None,
        duties: Sequence[Duty] | None = None,
        events: Events | None = None,
        notify: Callable[[Wakeup], None] = lambda _: None,
        count_requeued: Callable[[str, str, str], None] = lambda _queue, _kind, _why: None,
        link: Link | None = None,
        not_delivering: Callable[[], bool] = lambda: False,
    ) -> None:
        """`holder` is the supervisor's id: it shows whether there is another process to hand over to. `notify` wakes other
        processes after a commit. `count_requeued(queue, kind, why)` is called for each job that is taken from a dead worker.
        `link` is used for elections and heartbeats, and is not closed here; without it, the leader opens its own.
        `not_delivering` returns whether this process does not receive notifications (NOTIFY)."""
        self._settings = settings or LeaderSettings()
        self._events = events or Events()
        self._notify = notify
        self._count_requeued = count_requeued
        self.holder = holder or str(uuid4())
        process = {"host": socket.gethostname(), "pid": os.getpid()}
        self._election = Election(database, self.holder, self._settings, process)
        # Separate from the duties' links: a long round must not delay the heartbeat.
        self._owns_link = link is None
        self._link = Link(database, "leader", hot=True) if link is None else link
        self._links = DutyLinks(database)
        self.contact = Contact(longest_silence=max(6.0, 3 * self._settings.heartbeat))
        self.candidates = 1
        """The approximate number of candidates: workers that serve the same queues."""
        self._duties = {duty.name: duty for duty in duties or self._all_duties(not_delivering)}
        self._held: dict[str, HeldTerm] = {}
        self._elect_at = 0.0
        self._may_have_won = False
        """The answer to the last election is missing."""
        self._not_before: dict[str, float] = {}
        self._election_task = PeriodicTask("election", self._elect)
        self._heartbeat_task = PeriodicTask("leader", self._heartbeat)
        self._duty_tasks = {name: PeriodicTask(name, partial(self._do, duty)) for name, duty in self._duties.items()}
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    def _all_duties(self, not_delivering: Callable[[], bool]) -> list[Duty]:
        settings = self._settings
        reporting = Reporting(
            self._notify,
            self._events,
            self._count_requeued,
            dead_letter_level=settings.dead_letter_level,
            schedule_missed_level=settings.schedule_missed_level,
            schedule_skipped_level=settings.schedule_skipped_level,
        )
        return create_duties(
            DutyContext(settings=settings, reporting=reporting, contact=self.contact, not_delivering=not_delivering)
        )

    @property
    def duties_held(self) -> list[str]:
        return sorted(name for name, held in self._held.items() if held.left > 0)

    def start(self) -> None:
        self._elect_at = 0.0
        self._stopping = False
        self._election_task = PeriodicTask("election", self._elect)
        tasks = (self._election_task, self._heartbeat_task, *self._duty_tasks.values())
        self._tasks = [asyncio.create_task(task.run()) for task in tasks]

    def on_wakeup(self, wakeup: Wakeup) -> None:
        if wakeup in (Wakeup.missed(), Wakeup.duty_free()) and random.random() * self.candidates < CANDIDATES_WOKEN:  # noqa: S311
            self._elect_soon()
        for name, duty in self._duties.items():
            if wakeup == Wakeup.missed() or wakeup in duty.wakes_on:
                self._duty_tasks[name].wake()

    def hint(self, free_in: float | None) -> None:
        """The renewal of the workers' leases returns when the first duty may become free; until then no election is needed. Does
        not apply to `advisory`: the lock may be free long before."""
        if self._election.uses_lock:
            return
        if free_in is not None and free_in > 0:
            # On a server whose clock was set back, leases seem to last long.
            soonest = min(free_in, 3 * self._settings.term)
            self._elect_in(soonest + random.uniform(0.1, 1.0 + self.candidates * SPREAD))  # noqa: S311
        elif free_in is not None:
            self._elect_soon()

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        if not tasks:
            return
        self._stopping = True
        # Only when a running election has ended is it known what it won and has to be released.
        self._election_task.end()
        await asyncio.wait(tasks[:1], timeout=ELECTION_PATIENCE)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._held or self._may_have_won:
            with suppress(StoreUnavailable):
                if await self._link.fetch(leases.release_all(self.holder), within=RELEASE_PATIENCE):
                    self._notify(Wakeup.duty_free())
                await self._election.release_lock(self._link)
        self._held.clear()
        await self._close()

    async def _close(self) -> None:
        """Closes the connections until the next election."""
        await self._links.close()
        if self._owns_link:
            await self._link.close()

    # Elections

    def _elect_soon(self) -> None:
        """Not all candidates at the same time, and never later than planned."""
        soon = random.uniform(0.0, 0.3 + self.candidates * SPREAD)  # noqa: S311
        self._elect_in(max(0.0, min(soon, self._elect_at - boottime())))

    def _elect_in(self, seconds: float) -> None:
        self._elect_at = boottime() + seconds
        self._election_task.wake()

    async def _elect(self) -> float:
        wanted = list(self._wanted())
        if not wanted:
            return self._pause_left()
        wait = self._elect_at - boottime()
        if wait > 0:
            return wait
        asked_at, due = boottime(), self._elect_at
        self._may_have_won = True
        try:
            won = await self._election.acquire(self._link, wanted, candidates=self.candidates)
        except StoreUnavailable:
            self.contact.broke()
            raise
        self.contact.touch()
        self._may_have_won = False
        new = [term for term in won.terms if self._take(term, asked_at)]
        if new:
            log.debug("duties acquired", extra={"duties": _listed(new)})
        if not self._held:
            await self._close()  # a candidate needs no connection until the next election
        # A notification that arrived during the election is newer than its answer.
        if self._elect_at == due:
            self._elect_at = boottime() + min(won.retry_in, SHARED_TTL / 4)
        return max(0.0, self._elect_at - boottime())

    def _wanted(self) -> Iterable[Duty]:
        now = boottime()
        for name, duty in self._duties.items():
            held = self._held.get(name)
            if held is None:
                if self._not_before.get(name, 0.0) <= now:
                    yield duty
            elif held.term.holder == SHARED:
                yield duty  # renewed by acquiring it again

    def _pause_left(self) -> float:
        ends = [until - boottime() for name, until in self._not_before.items() if name not in self._held]
        return min((left for left in ends if left > 0), default=FOREVER)

    def _take(self, term: Term, asked_at: float) -> bool:
        """Whether this process did not hold it before."""
        held = self._held.get(term.duty)
        if held is not None and held.term == term:
            held.renewed(asked_at - term.ttl / 2)  # it may not have been renewed: only half of it is certain
            return False
        self._held[term.duty] = HeldTerm(term, asked_at)
        self._events.emit(LeaderElected(duty=term.duty, term=term.term))
        self._heartbeat_task.wake()
        self._duty_tasks[term.duty].wake()
        return True

    def _lose(self, lost: Sequence[HeldTerm], why: str, level: int | None = None) -> None:
        ours = [held for held in lost if self._held.get(held.term.duty) is held]
        if not ours:
            return
        fields = {"duties": _listed([held.term for held in ours]), "reason": why}
        log.log(self._level_of_loss(ours) if level is None else level, "duties lost", extra=fields)
        for held in ours:
            del self._held[held.term.duty]
            self._events.emit(LeaderDeposed(duty=held.term.duty, term=held.term.term))
        self._elect_in(random.uniform(0.1, 1.0))  # noqa: S311

    def _lose_expired(self, held: HeldTerm, why: str) -> None:
        """Duties are renewed together, so the others that could not be renewed are part of the same log record."""
        self._lose([held, *(other for other in self._held.values() if other is not held and other.left <= 0)], why)

    def _level_of_loss(self, lost: Sequence[HeldTerm]) -> int:
        """An outage is logged on its own. Losing a duty although PostgreSQL answers indicates a problem, unless it is a shared
        duty, which the other processes do as well."""
        if self._stopping:
            return logging.DEBUG
        alone = [held.term.ttl for held in lost if held.term.holder != SHARED]
        return logging.WARNING if alone and self.contact.unbroken_for >= max(alone) else logging.DEBUG

    # Heartbeats

    async def _heartbeat(self) -> float:
        ours = [held for held in self._held.values() if held.term.holder == self.holder]
        if not ours:
            return FOREVER
        await self._release_stalled(ours)
        kept = [held for held in ours if self._held.get(held.term.duty) is held]
        asked_at = boottime()
        if not await self._election.may_lead(self._link):
            renewed: set[str] = set()
        else:
            renewed = set(await self._link.fetch(leases.beat(self.holder, [held.take_record() for held in kept])))
        self.contact.touch()
        for held in kept:
            if held.term.duty in renewed:
                held.renewed(asked_at)
        self._lose([held for held in kept if held.term.duty not in renewed], "another process may hold them")
        await self._rotate()
        return self._settings.heartbeat

    async def _release_stalled(self, ours: list[HeldTerm]) -> None:
        """Releases the lease, so that another process can acquire it at once, and does not try to acquire it for one term."""
        stalled = [held for held in ours if held.round_age > STALLED]
        for held in stalled:
            self._not_before[held.term.duty] = boottime() + held.term.ttl
            self._lose([held], f"the round has taken {held.round_age:.0f} s", logging.WARNING)
        if not stalled:
            return
        query = leases.release(self.holder, [held.term for held in stalled])
        with suppress(StoreUnavailable):  # it waits for the statement that hangs; without a heartbeat the lease expires
            if await self._link.fetch(query, within=RELEASE_PATIENCE):
                self._notify(Wakeup.duty_free())

    async def _rotate(self) -> None:
        """Hands over duties that were held for `rotate` seconds and are between two rounds, if there is another process. Not with
        `advisory`: while this process keeps the lock, no other could take over."""
        if not self._settings.rotate or self._election.uses_lock:
            return
        old = {
            name: held
            for name, held in self._held.items()
            if held.term.holder == self.holder and not held.round_age and boottime() - held.since > self._settings.rotate
        }
        if not old:
            return
        query = leases.release(self.holder, [held.term for held in old.values()], handing_over=True)
        released = await self._link.fetch(query)
        if released:
            self._notify(Wakeup.duty_free())
        for name in released:
            self._not_before[name] = boottime() + HANDOVER_PAUSE
            # A round that started meanwhile may have found that its term is over, and removed it.
            if self._held.get(name) is old[name]:
                del self._held[name]
                log.debug("duty released to another process", extra={"duty": name, "term": old[name].term.term})
                self._events.emit(LeaderDeposed(duty=name, term=old[name].term.term))
        for held in old.values():
            held.since = boottime()  # there is no other process: tried again after the same time
        self._elect_in(HANDOVER_PAUSE)

    # Rounds

    async def _do(self, duty: Duty) -> float:
        held = self._held.get(duty.name)
        if held is None:
            return FOREVER
        if held.left <= 0:
            self._lose_expired(held, "not renewed in time")
            return FOREVER
        try:
            async with held.round(), self._links.take() as link:
                report = await duty.run_once(link, held.term)
        except Contended:
            raise  # PostgreSQL answers: the contact is not broken
        except StoreUnavailable:
            self.contact.broke()
            raise
        except TimeoutError:
            self._lose_expired(held, "the term ended during a round")
            return FOREVER
        if not report.holds:
            self._lose([held], "the term is over")
            return FOREVER
        held.completed(report)
        return report.rest


def _listed(terms: Sequence[Term]) -> str:
    return ", ".join(f"{term.duty} (term {term.term})" for term in terms)
