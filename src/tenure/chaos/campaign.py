"""A campaign: workers, clients and a nemesis at work together; then peace, and the record is brought in."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psycopg

from tenure.chaos import recorder, scheduled, work
from tenure.chaos.clients import Clients
from tenure.chaos.drain import LEFT, drain, number, repaired, until_ready
from tenure.chaos.faults import KINDS, missing
from tenure.chaos.field import Field
from tenure.chaos.fleet import strays
from tenure.chaos.layout import laid_out
from tenure.chaos.ledger import CampaignRecord, Ledger
from tenure.chaos.load import FAULTS_BEGAN, Task
from tenure.chaos.nemesis import Nemesis
from tenure.chaos.order import Order, Outcome, Show, Sight
from tenure.chaos.plan import draw_plan
from tenure.store.workers import MAX_CRASHES

LOOK_EVERY = 0.2
BUSY = 20.0  # seconds for the clients to begin
ENDING = 5.0  # seconds for what workers leave behind
LATE = 10.0
"""Seconds for which an older job may be passed over. In calm it is two; here the machine is busy dying."""

LONGEST = 10.0
"""Seconds in which handlers end that do not go by the lease."""


async def conduct(order: Order, folder: Path, show: Show) -> Outcome:
    """The whole of it: afterwards the ledger in `folder` is complete."""
    ledger = Ledger(folder)
    ourselves = asyncio.current_task()
    assert ourselves is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ourselves.cancel)  # so that all is cleared away
    async with laid_out(order, folder) as field:
        campaign = Campaign(order, field, ledger, show)
        try:
            await campaign.run()
        finally:
            campaign.clients.kill()
        with psycopg.connect(field.dsn, autocommit=True) as connection:
            recorder.export(connection, ledger)
        return campaign.outcome()


class Campaign:
    def __init__(self, order: Order, field: Field, ledger: Ledger, show: Show) -> None:
        self._order = order
        self._field = field
        self._ledger = ledger
        self._show = show
        self._began = time.time()
        self._live = 0
        self._repaired = True
        self._left_out = {name: why for name in KINDS if (why := missing(field, name)) is not None}
        kinds = {name: kind for name, kind in KINDS.items() if name not in self._left_out and name in (order.only or KINDS)}
        in_lulls = frozenset(name for name, kind in kinds.items() if kind.in_lulls)
        plan = draw_plan(order.seed, {name: kind.weight for name, kind in kinds.items()}, in_lulls)
        self._nemesis = Nemesis(field, plan, ledger)
        routes = [field.wires["clients"].dsn, field.dsn]
        self.clients = Clients([self._task(place, dsn) for place, dsn in enumerate(routes)])

    def _task(self, place: int, dsn: str) -> Task:
        order = self._order
        folder = str(self._field.folder)
        return Task(place=place, dsn=dsn, folder=folder, seed=order.seed, lease=order.lease, backlog=order.backlog)

    async def run(self) -> None:
        self._field.fleet.start()
        await until_ready(self._field, self._order.workers * self._order.processes)
        self._began = time.time()
        keeping = asyncio.create_task(self._field.fleet.keep())
        async with self._showing("storm"):
            await self._storm(keeping)
        healed = time.time()
        async with self._showing("peace"):
            drained = await drain(self._field, healed)
            self._repaired = await repaired(self._field)
        keeping.cancel()
        await asyncio.to_thread(self._field.fleet.stop)
        await self._end_strays()
        self._ledger.write_campaign(self._course(healed, drained=drained))
        self._see("record")

    async def _storm(self, keeping: asyncio.Task[None]) -> None:
        await self.clients.start()
        await self._until_busy()
        self._began = time.time()
        (self._field.folder / FAULTS_BEGAN).write_text(str(self._began), "utf-8")
        striking = asyncio.create_task(self._nemesis.run())
        while not (striking.done() or keeping.done() or self._enough()):
            self.clients.check()
            await asyncio.sleep(LOOK_EVERY)
        striking.cancel()
        await self._nemesis.heal()
        await self.clients.finish()

    async def _end_strays(self) -> None:
        """Whatever handlers have started ends with its worker."""
        for pid in await asyncio.to_thread(strays, self._field.folder, ENDING):
            self._field.fleet.gave_up.append((time.time(), f"process {pid} outlived its worker"))
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def _until_busy(self) -> None:
        """Faults that meet no job prove nothing."""
        deadline = time.monotonic() + BUSY
        while self.clients.accepted < self._order.backlog // 20 and time.monotonic() < deadline:
            self.clients.check()
            await asyncio.sleep(LOOK_EVERY)

    def _enough(self) -> bool:
        order, faults = self._order, self._nemesis.done.total()
        return time.time() - self._began >= order.seconds and self.clients.accepted >= order.jobs and faults >= order.faults

    @asynccontextmanager
    async def _showing(self, phase: str) -> AsyncIterator[None]:
        async def again() -> None:
            while True:
                live = await number(self._field, LEFT)
                self._live = self._live if live < 0 else live
                self._see(phase)
                await asyncio.sleep(0.5)

        task = asyncio.create_task(again())
        try:
            yield
        finally:
            task.cancel()

    def _see(self, phase: str) -> None:
        done = self._nemesis.done
        elapsed = time.time() - self._began
        self._show(Sight(phase, elapsed, self.clients.accepted, self._live, done.total(), len(done), self._nemesis.latest))

    def _course(self, healed: float, *, drained: bool) -> CampaignRecord:
        return CampaignRecord(
            seed=self._order.seed,
            lease=self._order.lease,
            began=self._began,
            healed=healed,
            ended=time.time(),
            drained=drained,
            repaired=self._repaired,
            concurrency=self._order.concurrency,
            max_crashes=MAX_CRASHES,
            late=LATE,
            schedules=tuple(scheduled.app.kinds.schedules),
            few=self._order.workers * self._order.processes * self._order.concurrency // 4,
            longest=max(LONGEST, work.LONGEST * self._order.lease),
        )

    def outcome(self) -> Outcome:
        return Outcome(
            order=self._order,
            accepted=self.clients.accepted,
            faults=dict(self._nemesis.done),
            left_out=self._left_out,
            calls=dict(self.clients.total("calls")),
            surprises=dict(self.clients.total("surprises")),
            gave_up=[words for _, words in self._field.fleet.gave_up],
        )
