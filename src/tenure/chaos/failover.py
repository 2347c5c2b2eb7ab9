"""The failover campaign: the primary dies while its standby lags, the standby is promoted, and a new standby is built.

Replication is asynchronous, so what was committed while the standby lagged is lost, by design. The checker excuses only
answers to clients and runs of handlers in the time between the last commit that the standby is known to have and the death of
the primary. Everything else must hold, and so must everything that happens afterwards.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psycopg

from tenure.chaos import recorder
from tenure.chaos.campaign import campaign_record
from tenure.chaos.campaign_options import CampaignOptions, CampaignOutcome, CampaignProgress, ShowProgress
from tenure.chaos.client_process import ClientTask
from tenure.chaos.clients import ClientProcesses
from tenure.chaos.ledger import Fault, Ledger, as_line
from tenure.chaos.replication import FailoverTimes, ReplicatedServers
from tenure.chaos.testbed import Testbed, worker_arguments
from tenure.chaos.waits import until_drained, until_ready
from tenure.chaos.workers import CampaignWorker, WorkerGroup, unexpected_refusals, worker_environment
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget

BEFORE = (3.0, 5.0)  # seconds of work before a failover
LAG = (0.3, 3.0)  # seconds for which the standby receives nothing before the primary dies
DOWN = (0.0, 1.0)  # seconds without a primary
AFTER = 4.0  # seconds of work after it, before a new standby is built


@dataclass(frozen=True, kw_only=True)
class FailoverOptions(CampaignOptions):
    seconds: float = 0.0
    times: int = 2
    workers: int = 3
    processes: int = 1
    concurrency: int = 50
    backlog: int = 1_000


async def run_failover_campaign(options: FailoverOptions, folder: Path, show: ShowProgress) -> CampaignOutcome:
    """Afterwards the ledger in `folder` is complete."""
    ledger = Ledger(folder)
    with ReplicatedServers(folder / "servers") as servers:
        await migrate(DatabaseTarget.at(servers.dsn))
        with psycopg.connect(servers.dsn, autocommit=True) as connection:
            recorder.install(connection)
        testbed = Testbed(dsn=servers.dsn, lease=options.lease, folder=folder)
        campaign = FailoverCampaign(options, testbed, ledger, show)
        try:
            await campaign.run(servers)
        finally:
            campaign.kill()
        with psycopg.connect(servers.dsn, autocommit=True) as connection:
            recorder.export(connection, ledger)
        return campaign.outcome()


class FailoverCampaign:
    def __init__(self, options: FailoverOptions, testbed: Testbed, ledger: Ledger, show: ShowProgress) -> None:
        self._options = options
        self._testbed = testbed
        self._ledger = ledger
        self._show = show
        self._random = Random(options.seed)  # noqa: S311 - chosen to be repeatable
        self._done = 0
        self._latest = ""
        self._began = time.time()
        testbed.workers = WorkerGroup([_worker(testbed, options, number) for number in range(1, options.workers + 1)])
        task = ClientTask(
            number=0,
            dsn=testbed.dsn,
            folder=str(testbed.folder),
            seed=options.seed,
            lease=options.lease,
            backlog=options.backlog,
            workflows=options.workflows,
        )
        self._clients = ClientProcesses([task])

    async def run(self, servers: ReplicatedServers) -> None:
        workers = self._testbed.workers
        workers.start()
        await until_ready(self._testbed, self._options.workers * self._options.processes)
        self._began = time.time()
        restarting = asyncio.create_task(workers.restart_exited())
        await self._clients.start()
        for left in reversed(range(self._options.times)):
            await self._fail_over(servers)
            if left:
                await asyncio.to_thread(servers.build_standby)
        await self._clients.finish()
        healed = time.time()
        self._show_progress("drain")
        drained = await until_drained(self._testbed, healed)
        restarting.cancel()
        await asyncio.to_thread(workers.stop)
        self._ledger.write_campaign(campaign_record(self._options, self._began, healed, drained=drained))
        self._show_progress("export")

    async def _fail_over(self, servers: ReplicatedServers) -> None:
        self._show_progress("faults")
        await asyncio.sleep(self._random.uniform(*BEFORE))
        self._clients.check()
        times = await servers.fail_over(self._random.uniform(*LAG), self._random.uniform(*DOWN))
        self._record(times)
        self._show_progress("faults")
        await asyncio.sleep(AFTER)

    def _record(self, times: FailoverTimes) -> None:
        self._done += 1
        lag, down = times.killed - times.since, times.promoted - times.killed
        target = f"lag {lag:.1f} s, from {times.first} to {times.last} in the WAL; no primary for {down:.1f} s"
        self._latest = f"failover: {target}"
        with self._ledger.write("faults.jsonl") as file:
            file.write(as_line(Fault("failover", times.since, times.promoted, target, done=True)))

    def _show_progress(self, phase: str) -> None:
        elapsed = time.time() - self._began
        self._show(CampaignProgress(phase, elapsed, self._clients.accepted, 0, 0, self._done, min(self._done, 1), self._latest))

    def kill(self) -> None:
        self._clients.kill()
        for worker in self._testbed.workers.workers:
            if worker.alive:
                worker.kill_all()

    def outcome(self) -> CampaignOutcome:
        return CampaignOutcome(
            options=self._options,
            accepted=self._clients.accepted,
            faults={"failover": self._done},
            unavailable={},
            calls=dict(self._clients.total("calls")),
            unexpected_errors=dict(self._clients.total("unexpected_errors")),
            unexpected_exits=self._testbed.workers.unexpected_exits,
            unexpected_refusals=dict(unexpected_refusals(self._testbed.folder)),
        )


def _worker(testbed: Testbed, options: CampaignOptions, number: int) -> CampaignWorker:
    environment = worker_environment(testbed.folder, options.lease)
    return CampaignWorker(f"worker-{number}", testbed.dsn, testbed.folder, worker_arguments(options), environment)
