"""Stands for election for every duty, and does those it won."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from uuid import uuid4

from tenure.leader.cron import Cron
from tenure.leader.duties import Cleaner, Contact, Duty, Reaper, Rollup, Stager
from tenure.model.errors import StoreUnavailable
from tenure.model.events import Events, LeaderDeposed, LeaderElected
from tenure.pacing import FOREVER, Beat, jittered
from tenure.store import leases
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.place import Place

log = logging.getLogger("tenure")

LONGEST_CANDIDACY = 10.0
SHORTEST_CANDIDACY = 0.5


class Leader:
    """`start()` returns at once; `stop()` gives every duty back, so that another takes over without waiting."""

    def __init__(
        self, place: Place, *, retention: float, duties: Sequence[Duty] | None = None, events: Events | None = None
    ) -> None:
        self._events = events or Events()
        self.holder = str(uuid4())
        self._whereabouts = {"host": socket.gethostname(), "pid": os.getpid()}
        self._link = Link(place, "leader", hot=True)
        self.contact = Contact()
        self._duties = {duty.name: duty for duty in duties or self._usual_duties(retention)}
        self._terms: dict[str, Term] = {}
        self._candidacy = Beat("election", self._stand)
        self._beats = {name: Beat(name, partial(self._do, duty)) for name, duty in self._duties.items()}
        self._tasks: list[asyncio.Task[None]] = []

    def _usual_duties(self, retention: float) -> tuple[Duty, ...]:
        return Stager(), Reaper(self.contact), Cleaner(retention), Rollup(), Cron(retention)

    @property
    def duties_held(self) -> list[str]:
        return sorted(self._terms)

    def start(self) -> None:
        self._tasks = [asyncio.create_task(beat.run()) for beat in (self._candidacy, *self._beats.values())]

    def hear(self, word: str) -> None:
        if word in ("", "due"):
            self._wake("stager")
        if word in ("", *Cron.hears):
            self._wake("cron")

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._terms:
            with suppress(StoreUnavailable):
                await self._link.fetch(leases.release(self.holder, self._terms.values()))
            self._terms.clear()
        await self._link.close()

    async def _stand(self) -> float:
        missing = [(name, duty.ttl) for name, duty in self._duties.items() if name not in self._terms]
        if not missing:
            return FOREVER
        try:
            [(won, next_free)] = await self._link.fetch(leases.acquire(self.holder, missing, self._whereabouts))
        except StoreUnavailable:
            self.contact.broke()
            raise
        self.contact.touch()
        for name, term in json.loads(won).items():
            self._terms[name] = Term(name, self.holder, term, self._duties[name].ttl)
            log.info("leading %s, term %d", name, term)
            self._events.emit(LeaderElected(duty=name, term=term))
            self._wake(name)
        # The others' leases tell when it is worth asking again; a holder that leaves in order is missed for that long at most.
        return jittered(min(LONGEST_CANDIDACY, max(SHORTEST_CANDIDACY, next_free or LONGEST_CANDIDACY)))

    async def _do(self, duty: Duty) -> float:
        term = self._terms.get(duty.name)
        if term is None:
            return FOREVER
        try:
            report = await duty.run_once(self._link, term)
        except StoreUnavailable:
            self.contact.broke()
            raise
        if not report.holds:
            log.warning("no longer leading %s, term %d", duty.name, term.term)
            self._events.emit(LeaderDeposed(duty=duty.name, term=term.term))
            self._terms.pop(duty.name, None)
            self._candidacy.wake()
            return FOREVER
        return report.rest

    def _wake(self, duty: str) -> None:
        if duty in self._beats:
            self._beats[duty].wake()
