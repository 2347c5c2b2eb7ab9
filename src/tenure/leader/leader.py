"""Stands for election for every duty, and does those it won."""

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

from tenure.leader.duties.cleaner import Cleaner
from tenure.leader.duties.cron import Cron
from tenure.leader.duties.doctor import Doctor
from tenure.leader.duties.duty import Duty, Outlets
from tenure.leader.duties.reaper import Contact, Reaper
from tenure.leader.duties.rollup import Rollup
from tenure.leader.duties.stager import Stager
from tenure.leader.election import SHARED, SHARED_TTL, Election
from tenure.leader.links import DutyLinks
from tenure.leader.settings import LeaderSettings
from tenure.leader.terms import Held
from tenure.model.errors import StoreUnavailable
from tenure.model.events import Events, LeaderDeposed, LeaderElected
from tenure.periodic import FOREVER, PeriodicTask, boottime
from tenure.store import leases
from tenure.store.duty_link import Contended
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget
from tenure.store.wakeups import FREE

log = logging.getLogger("tenure")

ABSTINENCE = 3.0
"""Seconds for which a holder that handed a duty over does not want it back."""

STANDING = 8
"""Of many candidates, about so many stand when they hear of a free duty; the others when a renewal tells that it still is."""

SPREAD = 0.02
"""Seconds by which each further candidate spreads the moment at which they stand: each needs a connection for that."""

ELECTION_PATIENCE = 2.0
"""Seconds that an election under way may take at the end."""

RELEASE_PATIENCE = 2.0
"""Seconds for which a release waits for a statement of the duty that is under way."""

STALLED = 60.0
"""Seconds. A leader whose round takes longer loses that duty: it may hang, although the heartbeat continues."""


class Leader:
    """`start()` returns at once; `stop()` gives every duty back, so that another takes over without waiting."""

    def __init__(
        self,
        database: DatabaseTarget,
        settings: LeaderSettings | None = None,
        *,
        holder: str | None = None,
        duties: Sequence[Duty] | None = None,
        events: Events | None = None,
        tell: Callable[[str], None] = lambda _: None,
        link: Link | None = None,
        deaf: Callable[[], bool] = lambda: False,
    ) -> None:
        """`holder` is the supervisor's id: by it a leader knows whether there is another to hand over to. `tell` wakes other
        processes after a commit. `link` is used for elections and heartbeats, and never closed here; without one, the leader
        has its own. `deaf` tells whether this process does not hear what others tell by NOTIFY."""
        self._settings = settings or LeaderSettings()
        self._events = events or Events()
        self._tell = tell
        self.holder = holder or str(uuid4())
        whereabouts = {"host": socket.gethostname(), "pid": os.getpid()}
        self._election = Election(database, self.holder, self._settings, whereabouts)
        # Apart from the duties: a round that takes long must not hold up the heartbeat.
        self._owns_link = link is None
        self._link = Link(database, "leader", hot=True) if link is None else link
        self._links = DutyLinks(database)
        self.contact = Contact(longest_silence=max(6.0, 3 * self._settings.heartbeat))
        self.crowd = 1
        """How many candidates there are, about: workers that serve the same as ours."""
        self._deaf = deaf
        self._duties = {duty.name: duty for duty in duties or self._usual_duties()}
        self._held: dict[str, Held] = {}
        self._stand_at = 0.0
        self._may_have_won = False
        """An election was not answered."""
        self._abstains: dict[str, float] = {}
        self._candidacy = PeriodicTask("election", self._stand)
        self._heart = PeriodicTask("leader", self._beat)
        self._beats = {name: PeriodicTask(name, partial(self._do, duty)) for name, duty in self._duties.items()}
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    def _usual_duties(self) -> tuple[Duty, ...]:
        settings = self._settings
        outlets = Outlets(
            self._tell,
            self._events,
            dead_letter_level=settings.dead_letter_level,
            schedule_missed_level=settings.schedule_missed_level,
            schedule_skipped_level=settings.schedule_skipped_level,
        )
        return (
            Stager(outlets),
            Reaper(self.contact, outlets, every=settings.reap_every),
            Cron(settings.retention, outlets),
            Cleaner(settings.retention, settings.dead_letter_retention, every=settings.clean_every),
            Rollup(),
            Doctor(self._deaf),
        )

    @property
    def duties_held(self) -> list[str]:
        return sorted(name for name, held in self._held.items() if held.left > 0)

    def start(self) -> None:
        self._stand_at = 0.0
        self._stopping = False
        self._candidacy = PeriodicTask("election", self._stand)
        beats = (self._candidacy, self._heart, *self._beats.values())
        self._tasks = [asyncio.create_task(beat.run()) for beat in beats]

    def hear(self, word: str) -> None:
        if word in ("", FREE) and random.random() * self.crowd < STANDING:  # noqa: S311
            self._stand_soon()
        for name, duty in self._duties.items():
            if word == "" or word in duty.hears:
                self._beats[name].wake()

    def hint(self, free_in: float | None) -> None:
        """The renewal of our workers told when the first duty may become free: until then we need not ask. Where a lock settles
        it, that says nothing: the lock may be free long before."""
        if self._election.by_lock:
            return
        if free_in is not None and free_in > 0:
            # A server whose clock was set back tells of leases that seem to last for long.
            soonest = min(free_in, 3 * self._settings.term)
            self._stand_in(soonest + random.uniform(0.1, 1.0 + self.crowd * SPREAD))  # noqa: S311
        elif free_in is not None:
            self._stand_soon()

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        if not tasks:
            return
        self._stopping = True
        # What an election under way wins is known when it has ended, and can be released.
        self._candidacy.end()
        await asyncio.wait(tasks[:1], timeout=ELECTION_PATIENCE)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._held or self._may_have_won:
            with suppress(StoreUnavailable):
                if await self._link.fetch(leases.release_all(self.holder), within=RELEASE_PATIENCE):
                    self._tell(FREE)
                await self._election.leave(self._link)
        self._held.clear()
        await self._close()

    async def _close(self) -> None:
        """What is not needed until the next election."""
        await self._links.close()
        if self._owns_link:
            await self._link.close()

    # Being elected

    def _stand_soon(self) -> None:
        """Not all candidates in the same moment, and never later than we meant to."""
        soon = random.uniform(0.0, 0.3 + self.crowd * SPREAD)  # noqa: S311
        self._stand_in(max(0.0, min(soon, self._stand_at - boottime())))

    def _stand_in(self, seconds: float) -> None:
        self._stand_at = boottime() + seconds
        self._candidacy.wake()

    async def _stand(self) -> float:
        wanted = list(self._wanted())
        if not wanted:
            return self._abstinence_left()
        wait = self._stand_at - boottime()
        if wait > 0:
            return wait
        asked_at, due = boottime(), self._stand_at
        self._may_have_won = True
        try:
            won = await self._election.stand(self._link, wanted, crowd=self.crowd)
        except StoreUnavailable:
            self.contact.broke()
            raise
        self.contact.touch()
        self._may_have_won = False
        new = [term for term in won.terms if self._take(term, asked_at)]
        if new:
            log.debug("leading %s", ", ".join(f"{term.duty} (term {term.term})" for term in new))
        if not self._held:
            await self._close()  # a candidate needs no connection until it asks again
        # What was heard while the question was under way is newer than its answer.
        if self._stand_at == due:
            self._stand_at = boottime() + min(won.ask_again_in, SHARED_TTL / 4)
        return max(0.0, self._stand_at - boottime())

    def _wanted(self) -> Iterable[Duty]:
        now = boottime()
        for name, duty in self._duties.items():
            held = self._held.get(name)
            if held is None:
                if self._abstains.get(name, 0.0) <= now:
                    yield duty
            elif held.term.holder == SHARED:
                yield duty  # renewed by asking again

    def _abstinence_left(self) -> float:
        ends = [until - boottime() for name, until in self._abstains.items() if name not in self._held]
        return min((left for left in ends if left > 0), default=FOREVER)

    def _take(self, term: Term, asked_at: float) -> bool:
        """Whether it is new to us."""
        held = self._held.get(term.duty)
        if held is not None and held.term == term:
            held.renewed(asked_at - term.ttl / 2)  # as it was found it may be half over
            return False
        self._held[term.duty] = Held(term, asked_at)
        self._events.emit(LeaderElected(duty=term.duty, term=term.term))
        self._heart.wake()
        self._beats[term.duty].wake()
        return True

    def _lose(self, lost: Sequence[Held], why: str, level: int | None = None) -> None:
        ours = [held for held in lost if self._held.get(held.term.duty) is held]
        if not ours:
            return
        names = ", ".join(f"{held.term.duty} (term {held.term.term})" for held in ours)
        log.log(self._level_of_loss(ours) if level is None else level, "no longer leading %s: %s", names, why)
        for held in ours:
            del self._held[held.term.duty]
            self._events.emit(LeaderDeposed(duty=held.term.duty, term=held.term.term))
        self._stand_in(random.uniform(0.1, 1.0))  # noqa: S311

    def _lose_expired(self, held: Held, why: str) -> None:
        """Duties are renewed together, so the others that could not be renewed are part of the same log record."""
        self._lose([held, *(other for other in self._held.values() if other is not held and other.left <= 0)], why)

    def _level_of_loss(self, lost: Sequence[Held]) -> int:
        """An outage is reported by itself. A duty that is lost although PostgreSQL answers shows that something is wrong, unless
        all share it: then the others do it, too."""
        if self._stopping:
            return logging.DEBUG
        alone = [held.term.ttl for held in lost if held.term.holder != SHARED]
        return logging.WARNING if alone and self.contact.unbroken_for >= max(alone) else logging.DEBUG

    # Keeping what was won

    async def _beat(self) -> float:
        ours = [held for held in self._held.values() if held.term.holder == self.holder]
        if not ours:
            return FOREVER
        await self._give_up_stalled(ours)
        beating = [held for held in ours if self._held.get(held.term.duty) is held]
        asked_at = boottime()
        if not await self._election.may_lead(self._link):
            renewed: set[str] = set()
        else:
            renewed = set(await self._link.fetch(leases.beat(self.holder, [held.news() for held in beating])))
        self.contact.touch()
        for held in beating:
            if held.term.duty in renewed:
                held.renewed(asked_at)
        self._lose([held for held in beating if held.term.duty not in renewed], "another may have it")
        await self._rotate()
        return self._settings.heartbeat

    async def _give_up_stalled(self, ours: list[Held]) -> None:
        """Its lease is released, so that another can have it at once; and not wanted back for a while."""
        stalled = [held for held in ours if held.round_age > STALLED]
        for held in stalled:
            self._abstains[held.term.duty] = boottime() + held.term.ttl
            self._lose([held], f"its round has taken {held.round_age:.0f} s", logging.WARNING)
        if not stalled:
            return
        query = leases.release(self.holder, [held.term for held in stalled])
        with suppress(StoreUnavailable):  # it waits for a statement that hangs; without a heartbeat the lease runs out
            if await self._link.fetch(query, within=RELEASE_PATIENCE):
                self._tell(FREE)

    async def _rotate(self) -> None:
        """Hands over what was held for long and is not being done just now, if there is somebody else. Whoever leads by a lock
        keeps the lock, so nobody else could take over."""
        if not self._settings.rotate or self._election.by_lock:
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
            self._tell(FREE)
        for name in released:
            self._abstains[name] = boottime() + ABSTINENCE
            # A round that began meanwhile may have met the end of its term, and said so.
            if self._held.get(name) is old[name]:
                del self._held[name]
                log.debug("handed over %s, term %d", name, old[name].term.term)
                self._events.emit(LeaderDeposed(duty=name, term=old[name].term.term))
        for held in old.values():
            held.since = boottime()  # nobody else is there: asked again after the next span
        self._stand_in(ABSTINENCE)

    # Doing it

    async def _do(self, duty: Duty) -> float:
        held = self._held.get(duty.name)
        if held is None:
            return FOREVER
        if held.left <= 0:
            self._lose_expired(held, "it could not be renewed in time")
            return FOREVER
        try:
            async with held.round(), self._links.take() as link:
                report = await duty.run_once(link, held.term)
        except Contended:
            raise  # PostgreSQL is there: the reaper has no reason to wait
        except StoreUnavailable:
            self.contact.broke()
            raise
        except TimeoutError:
            self._lose_expired(held, "its time ran out during a round")
            return FOREVER
        if not report.holds:
            self._lose([held], "its term is over")
            return FOREVER
        held.did(report)
        return report.rest
