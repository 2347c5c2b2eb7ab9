"""A campaign: workers, clients and a nemesis at the same time; then a time without faults, and the record is exported."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psycopg

from tenure.chaos import jobs, recorder, scheduled_jobs
from tenure.chaos.campaign_options import CampaignOptions, CampaignOutcome, CampaignProgress, ShowProgress
from tenure.chaos.client_process import FAULTS_BEGAN, ClientTask
from tenure.chaos.clients import ClientProcesses
from tenure.chaos.faults import KINDS, why_unavailable
from tenure.chaos.ledger import CampaignRecord, Ledger
from tenure.chaos.nemesis import Nemesis
from tenure.chaos.plan import draw_plan
from tenure.chaos.testbed import Testbed, open_testbed
from tenure.chaos.waits import UNFINISHED_JOBS, StepCounter, fetch_number, until_drained, until_ready, until_repaired
from tenure.chaos.workers import describe_process, leftover_processes, unexpected_refusals
from tenure.store.workers import MAX_CRASHES

CHECK_EVERY = 0.2
SHOW_EVERY = 0.5
BUSY_TIMEOUT = 20.0  # seconds for the clients to begin
EXIT_TIMEOUT = 5.0  # seconds for processes that workers leave behind
MAX_OVERTAKEN = 10.0
"""Seconds for which newer jobs may be claimed before an older one. Without faults it is two; here the machine is busy with
killed processes."""

MAX_RUN = 10.0
"""Seconds within which handlers end whose duration does not depend on the lease."""


async def run_campaign(options: CampaignOptions, folder: Path, show: ShowProgress) -> CampaignOutcome:
    """Runs a whole campaign: afterwards the ledger in `folder` is complete."""
    ledger = Ledger(folder)
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # so that everything is cleaned up
    async with open_testbed(options, folder) as testbed:
        campaign = Campaign(options, testbed, ledger, show)
        try:
            await campaign.run()
        finally:
            campaign.clients.kill()
        with psycopg.connect(testbed.dsn, autocommit=True) as connection:
            recorder.export(connection, ledger)
        return campaign.outcome()


def campaign_record(
    options: CampaignOptions, began: float, healed: float, *, drained: bool, repaired: bool = True
) -> CampaignRecord:
    """The record of a campaign that ends now."""
    return CampaignRecord(
        seed=options.seed,
        lease=options.lease,
        began=began,
        healed=healed,
        ended=time.time(),
        drained=drained,
        repaired=repaired,
        concurrency=options.concurrency,
        max_crashes=MAX_CRASHES,
        late=MAX_OVERTAKEN,
        schedules=tuple(scheduled_jobs.app.kinds.schedules),
        free_slots=options.workers * options.processes * options.concurrency // 4,
        longest=max(MAX_RUN, jobs.MAX_LEASES * options.lease),
    )


class Campaign:
    def __init__(self, options: CampaignOptions, testbed: Testbed, ledger: Ledger, show: ShowProgress) -> None:
        self._options = options
        self._testbed = testbed
        self._ledger = ledger
        self._show = show
        self._began = time.time()
        self._unfinished = 0
        self._steps = StepCounter()
        self._repaired = True
        self._unavailable = {name: why for name in KINDS if (why := why_unavailable(testbed, name)) is not None}
        chosen = options.only or KINDS
        kinds = {name: kind for name, kind in KINDS.items() if name not in self._unavailable and name in chosen}
        in_lulls = frozenset(name for name, kind in kinds.items() if kind.in_lulls)
        plan = draw_plan(options.seed, {name: kind.weight for name, kind in kinds.items()}, in_lulls, options.rate)
        self._nemesis = Nemesis(testbed, plan, ledger)
        routes = [testbed.proxies["clients"].dsn, testbed.dsn]
        self.clients = ClientProcesses([self._task(number, dsn) for number, dsn in enumerate(routes)])

    def _task(self, number: int, dsn: str) -> ClientTask:
        options = self._options
        folder = str(self._testbed.folder)
        return ClientTask(
            number=number,
            dsn=dsn,
            folder=folder,
            seed=options.seed,
            lease=options.lease,
            backlog=options.backlog,
            workflows=options.workflows,
            web_port=self._testbed.web_port if self._testbed.workers.web is not None else None,
        )

    async def run(self) -> None:
        workers = self._testbed.workers
        workers.start()
        await until_ready(self._testbed, self._options.workers * self._options.processes)
        self._began = time.time()
        restarting = asyncio.create_task(workers.restart_exited())
        async with self._showing("faults"):
            await self._inject_faults(restarting)
        healed = time.time()
        async with self._showing("drain"):
            drained = await until_drained(self._testbed, healed)
            self._repaired = await until_repaired(self._testbed)
        restarting.cancel()
        await asyncio.to_thread(workers.stop)
        await self._kill_leftovers()
        record = campaign_record(self._options, self._began, healed, drained=drained, repaired=self._repaired)
        self._ledger.write_campaign(record)
        self._show_progress("export")

    async def _inject_faults(self, restarting: asyncio.Task[None]) -> None:
        await self.clients.start()
        await self._until_busy()
        self._began = time.time()
        (self._testbed.folder / FAULTS_BEGAN).write_text(str(self._began), "utf-8")
        injecting = asyncio.create_task(self._nemesis.run())
        while not (injecting.done() or restarting.done() or self._enough()):
            self.clients.check()
            await asyncio.sleep(CHECK_EVERY)
        injecting.cancel()
        await self._nemesis.heal()
        await self.clients.finish()

    async def _kill_leftovers(self) -> None:
        """A process that a handler started must end with its worker."""
        for pid in await asyncio.to_thread(leftover_processes, self._testbed.folder, EXIT_TIMEOUT):
            self._testbed.workers.unexpected_exits.append(f"process {pid} outlived its worker: {describe_process(pid)}")
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def _until_busy(self) -> None:
        """Faults without any job prove nothing."""
        deadline = time.monotonic() + BUSY_TIMEOUT
        while self.clients.accepted < self._options.backlog // 20 and time.monotonic() < deadline:
            self.clients.check()
            await asyncio.sleep(CHECK_EVERY)

    def _enough(self) -> bool:
        options, faults = self._options, self._nemesis.done.total()
        elapsed, accepted, steps = time.time() - self._began, self.clients.accepted, self._steps.steps
        return elapsed >= options.seconds and accepted >= options.jobs and faults >= options.faults and steps >= options.steps

    @asynccontextmanager
    async def _showing(self, phase: str) -> AsyncIterator[None]:
        async def repeat() -> None:
            while True:
                unfinished = await fetch_number(self._testbed, UNFINISHED_JOBS)
                self._unfinished = self._unfinished if unfinished < 0 else unfinished
                await self._steps.update(self._testbed)
                self._show_progress(phase)
                await asyncio.sleep(SHOW_EVERY)

        task = asyncio.create_task(repeat())
        try:
            yield
        finally:
            task.cancel()

    def _show_progress(self, phase: str) -> None:
        done = self._nemesis.done
        self._show(
            CampaignProgress(
                phase=phase,
                elapsed=time.time() - self._began,
                accepted=self.clients.accepted,
                live=self._unfinished,
                steps=self._steps.steps,
                faults=done.total(),
                kinds=len(done),
                latest=self._nemesis.latest,
            )
        )

    def outcome(self) -> CampaignOutcome:
        return CampaignOutcome(
            options=self._options,
            accepted=self.clients.accepted,
            faults=dict(self._nemesis.done),
            unavailable=self._unavailable,
            calls=dict(self.clients.total("calls")),
            unexpected_errors=dict(self.clients.total("unexpected_errors")),
            unexpected_exits=self._testbed.workers.unexpected_exits,
            unexpected_refusals=dict(unexpected_refusals(self._testbed.folder)),
        )
