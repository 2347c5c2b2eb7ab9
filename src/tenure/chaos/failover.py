"""A campaign of its own: the primary dies while its standby lags, the standby is promoted, and a new one is built.

Replication is asynchronous, so whatever was committed while the standby lagged is gone, by design. The checker excuses just
that: what clients were told, and what handlers did, in the time between the last commit that the standby is known to have and the
death of the primary. All else holds, as does everything that happens afterwards.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psycopg

from tenure.chaos import recorder, scheduled, work
from tenure.chaos.clients import Clients
from tenure.chaos.drain import drain, until_ready
from tenure.chaos.field import Field
from tenure.chaos.fleet import Fleet, Worker, settings_of
from tenure.chaos.ledger import CampaignRecord, Fault, Ledger, as_line
from tenure.chaos.load import Task
from tenure.chaos.order import Order, Outcome, Show, Sight
from tenure.chaos.pair import Lost, Pair
from tenure.store.migrator import migrate
from tenure.store.place import Place
from tenure.store.workers import MAX_CRASHES

APP = "tenure.chaos.scheduled:app"
BEFORE = (3.0, 5.0)  # seconds of work before a failover
LAG = (0.3, 3.0)  # seconds for which the standby receives nothing before the primary dies
AWAY = (0.0, 1.0)  # seconds without a primary
AFTER = 4.0  # seconds of work after it, until there is a standby again
LATE = 10.0
LONGEST = 10.0


@dataclass(frozen=True, kw_only=True)
class FailoverOrder(Order):
    seconds: float = 0.0
    times: int = 2
    workers: int = 3
    processes: int = 1
    concurrency: int = 50
    backlog: int = 1_000


async def conduct(order: FailoverOrder, folder: Path, show: Show) -> Outcome:
    """Afterwards the ledger in `folder` is complete."""
    ledger = Ledger(folder)
    with Pair(folder / "servers") as pair:
        await migrate(Place.at(pair.dsn))
        with psycopg.connect(pair.dsn, autocommit=True) as connection:
            recorder.install(connection)
        failover = Failover(order, Field(dsn=pair.dsn, lease=order.lease, folder=folder), ledger, show)
        try:
            await failover.run(pair)
        finally:
            failover.clear()
        with psycopg.connect(pair.dsn, autocommit=True) as connection:
            recorder.export(connection, ledger)
        return failover.outcome()


class Failover:
    def __init__(self, order: FailoverOrder, field: Field, ledger: Ledger, show: Show) -> None:
        self._order = order
        self._field = field
        self._ledger = ledger
        self._show = show
        self._draws = Random(order.seed)  # noqa: S311 - chosen to be repeatable
        self._done = 0
        self._latest = ""
        self._began = time.time()
        field.fleet = Fleet([_worker(field, order, place) for place in range(1, order.workers + 1)])
        task = Task(place=0, dsn=field.dsn, folder=str(field.folder), seed=order.seed, lease=order.lease, backlog=order.backlog)
        self._clients = Clients([task])

    async def run(self, pair: Pair) -> None:
        self._field.fleet.start()
        await until_ready(self._field, self._order.workers * self._order.processes)
        self._began = time.time()
        keeping = asyncio.create_task(self._field.fleet.keep())
        await self._clients.start()
        for left in reversed(range(self._order.times)):
            await self._once(pair)
            if left:
                await asyncio.to_thread(pair.follow)
        await self._clients.finish()
        healed = time.time()
        self._see("peace")
        drained = await drain(self._field, healed)
        keeping.cancel()
        await asyncio.to_thread(self._field.fleet.stop)
        self._ledger.write_campaign(self._course(healed, drained=drained))
        self._see("record")

    async def _once(self, pair: Pair) -> None:
        self._see("storm")
        await asyncio.sleep(self._draws.uniform(*BEFORE))
        self._clients.check()
        lost = await pair.fail_over(self._draws.uniform(*LAG), self._draws.uniform(*AWAY))
        self._note(lost)
        self._see("storm")
        await asyncio.sleep(AFTER)

    def _note(self, lost: Lost) -> None:
        self._done += 1
        lag, away = lost.killed - lost.since, lost.promoted - lost.killed
        told = f"lag {lag:.1f} s, from {lost.first} to {lost.last} in the log; no primary for {away:.1f} s"
        self._latest = f"failover: {told}"
        with self._ledger.write("faults.jsonl") as file:
            file.write(as_line(Fault("failover", lost.since, lost.promoted, told, done=True)))

    def _see(self, phase: str) -> None:
        elapsed = time.time() - self._began
        self._show(Sight(phase, elapsed, self._clients.accepted, 0, self._done, min(self._done, 1), self._latest))

    def _course(self, healed: float, *, drained: bool) -> CampaignRecord:
        order = self._order
        return CampaignRecord(
            seed=order.seed,
            lease=order.lease,
            began=self._began,
            healed=healed,
            ended=time.time(),
            drained=drained,
            concurrency=order.concurrency,
            max_crashes=MAX_CRASHES,
            late=LATE,
            schedules=tuple(scheduled.app.kinds.schedules),
            few=order.workers * order.processes * order.concurrency // 4,
            longest=max(LONGEST, work.LONGEST * order.lease),
        )

    def clear(self) -> None:
        self._clients.kill()
        for worker in self._field.fleet.workers:
            if worker.alive:
                worker.kill_all()

    def outcome(self) -> Outcome:
        return Outcome(
            order=self._order,
            accepted=self._clients.accepted,
            faults={"failover": self._done},
            left_out={},
            calls=dict(self._clients.total("calls")),
            surprises=dict(self._clients.total("surprises")),
            gave_up=[words for _, words in self._field.fleet.gave_up],
        )


def _worker(field: Field, order: Order, place: int) -> Worker:
    environment = settings_of(field.folder, order.lease)
    options = ["--queues", "default,side", "--processes", str(order.processes), "--concurrency", str(order.concurrency)]
    return Worker(f"worker-{place}", "either server", field.dsn, field.folder, options, environment, APP)
