"""Runs everything that is due, until there is nothing left to run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from tenure.app import Tenure
from tenure.client.locating import owner_name
from tenure.client.runtime import ClientRuntime
from tenure.engine_settings import engine_settings, scope_of
from tenure.leader.declaring import Declarations, declare
from tenure.leader.duties.duty import Duty
from tenure.leader.duties.reaper import Contact, Reaper
from tenure.leader.duties.registry import DutyContext, create_duties
from tenure.leader.reporting import Reporting
from tenure.leader.requeue import requeue_jobs
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError
from tenure.model.event_bus import Events
from tenure.model.events import Event, JobSettled
from tenure.model.ids import uuid7
from tenure.model.wakeup import Wakeup
from tenure.store import jobs, leases, schedules, testing, workers
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.test_databases import check_is_for_tests, set_ahead
from tenure.store.workers import Registration
from tenure.testing.enqueued_jobs import enqueued_committed, enqueued_sync
from tenure.testing.runtimes import runtime_of
from tenure.worker.engine import Engine

HOUSEKEEPING = {"cleaner", "rollup", "doctor"}
"""Duties that make no job due."""

LONG = 10 * 365 * 86400.0
"""Seconds: the lease of the worker must outlast any travel inside of a handler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One run of a job, and how it ended."""

    job_id: UUID
    kind: str
    attempt: int
    what: str
    """completed, continued, failed, canceled, timed_out, snoozed, suspended, held, crashed. A run that lost its job is not
    listed: it has no outcome."""
    state: str
    """The job's state after the run."""
    output: Any = None
    """Of a completed job, typed."""
    error: str | None = None
    """Of a failed attempt, with its traceback."""


class DrainTimeout(AssertionError):  # noqa: N818 - reads as the fact it states
    """There were still jobs to run when the time was over."""


async def drain(
    app: Tenure,
    *,
    queues: Sequence[str] | None = None,
    retries: bool = True,
    skip_sleeps: bool = False,
    concurrency: int = 10,
    timeout: Duration = "30s",
) -> list[JobRun]:
    """Runs all jobs that are due, those that they enqueue included, until none is left, and returns the runs in the order in
    which they ended.

    Retries are run at once; with `retries=False` they wait for their backoff, and `travel()` makes them due. Jobs with a later
    time are left alone. So are jobs that a limit holds back, and jobs that this app does not define. With `skip_sleeps`, the
    clock is set ahead to the time at which the next workflow wakes up, whenever there is nothing else to run: workflows run to
    their end, or until they wait for an event.
    """
    check_is_for_tests(app.settings.database)
    if (ambient := runtime_of(app).ambient) is not None:
        await ambient.join(lambda: refuse_uncommitted(app))
    return await _drained(app, queues, concurrency, to_seconds(timeout, what="timeout"), retries=retries, skip_sleeps=skip_sleeps)


async def _drained(
    app: Tenure, queues: Sequence[str] | None, concurrency: int, seconds: float, *, retries: bool, skip_sleeps: bool
) -> list[JobRun]:
    async with _drainer(app, queues, concurrency) as drainer:
        try:
            async with asyncio.timeout(seconds):
                await drainer.run(retries=retries, skip_sleeps=skip_sleeps)
        except TimeoutError:
            raise DrainTimeout(
                f"drain() was still running jobs after {seconds:g} s: {drainer.summary()}. A job that always enqueues "
                "another one never ends; for jobs that take longer, give drain(timeout=...)"
            ) from None
        return await drainer.results()


def drain_sync(
    app: Tenure,
    *,
    queues: Sequence[str] | None = None,
    retries: bool = True,
    skip_sleeps: bool = False,
    concurrency: int = 10,
    timeout: Duration = "30s",
) -> list[JobRun]:
    """The same for code without an event loop."""
    check_is_for_tests(app.settings.database)
    refuse_uncommitted(app)
    work = _drained(app, queues, concurrency, to_seconds(timeout, what="timeout"), retries=retries, skip_sleeps=skip_sleeps)
    return runtime_of(app).portal.run(work)


def refuse_uncommitted(app: Tenure) -> None:
    """A worker cannot see jobs in a transaction that the framework has open here: nothing would run, without a word."""
    ambient = runtime_of(app).ambient
    if ambient is None or ambient.connection() is None:
        return
    committed = {job.id for job in enqueued_committed(app)}
    kinds = {job.kind: None for job in enqueued_sync(app) if job.id not in committed}
    if kinds:
        raise ConfigError(
            f"{', '.join(kinds)}: enqueued in a transaction that is not committed, perhaps that of a TestCase, so no worker can "
            "run it. Use a TransactionTestCase or @pytest.mark.django_db(transaction=True); or run_inline(app), which runs jobs "
            "where they are enqueued"
        )


class RecordedEvents(Events):
    """Keeps the ends of runs, and passes all events on to the app."""

    def __init__(self, app: Events) -> None:
        super().__init__()
        self._app = app
        self.ends: list[JobSettled] = []

    def wants(self, type_: type[Event]) -> bool:
        return issubclass(type_, JobSettled) or self._app.wants(type_)

    def emit(self, event: Event) -> None:
        if isinstance(event, JobSettled) and event.what != "requeued":
            self.ends.append(event)
        self._app.emit(event)


class Drainer:
    def __init__(
        self, runtime: ClientRuntime, link: Link, engine: Engine, duties: list[tuple[Duty, Term]], events: RecordedEvents
    ) -> None:
        self._runtime = runtime
        self._link = link
        self._engine = engine
        self._duties = duties
        self._events = events

    async def run(self, *, retries: bool, skip_sleeps: bool) -> None:
        while True:
            before = len(self._events.ends)
            touched = await self._round()
            await self._engine.idle()
            hastened = sum(await self._link.fetch(testing.hasten_retries())) if retries else 0
            if touched or hastened or len(self._events.ends) > before:
                continue
            if not (skip_sleeps and await self._travel_to_wakeup()):
                return

    async def _round(self) -> int:
        """Enqueues what schedules have planned, makes due jobs pending, requeues what lost workers hold, and resolves what jobs
        wait for. Returns how many rows were changed."""
        return sum([(await duty.run_once(self._link, term)).touched for duty, term in self._duties])

    async def _travel_to_wakeup(self) -> bool:
        """Whether a workflow sleeps."""
        [seconds] = await self._link.fetch(testing.find_next_wakeup())
        if seconds is None:
            return False
        await asyncio.to_thread(set_ahead, self._link.database, timedelta(seconds=max(0.0, seconds) + 0.001))
        return True

    async def results(self) -> list[JobRun]:
        ends = self._events.ends
        done = [end.job_id for end in ends if end.what == "completed"]
        rows = await self._link.fetch(jobs.find_all(done)) if done else []
        outputs = {row.id: self._output(row.kind, row.output) for row in rows}
        return [
            JobRun(
                job_id=end.job_id,
                kind=end.kind,
                attempt=end.attempt,
                what=end.what,
                state=end.state.value,
                output=outputs.get(end.job_id) if end.what == "completed" else None,
                error=end.error,
            )
            for end in ends
        ]

    def _output(self, kind: str, text: str | None) -> Any:
        if text is None:
            return None
        return self._runtime.kinds[kind].output.decode(text)

    def summary(self) -> str:
        kinds = [end.kind for end in self._events.ends]
        counts = ", ".join(f"{kind} ran {kinds.count(kind)} times" for kind in dict.fromkeys(kinds)) or "no run has ended"
        running = dict.fromkeys(self._engine.running_kinds)
        return f"{counts}; {', '.join(running) or 'nothing'} is running now"


@asynccontextmanager
async def _drainer(app: Tenure, queues: Sequence[str] | None, concurrency: int) -> AsyncIterator[Drainer]:
    """A worker that runs jobs, and does the duties of a leader on request."""
    runtime, settings = runtime_of(app), app.settings
    supervisor, worker_id = str(uuid7()), str(uuid7())
    events = RecordedEvents(app.events)
    notify = runtime.session().notify
    scope = scope_of(app.kinds, queues or settings.workers.queues, settings.workers.capabilities)
    async with Link(settings.database, "test") as link:
        await declare(link, Declarations.of(app.kinds, settings.name or owner_name(app, app.kinds)), supervisor)
        await link.fetch(
            workers.register(
                Registration(
                    id=worker_id,
                    supervisor_id=supervisor,
                    pid=os.getpid(),
                    queues=scope.queues,
                    kinds=list(app.kinds),
                    capabilities=scope.capabilities,
                    concurrency=concurrency,
                ),
                LONG,
            )
        )
        engine = Engine(
            settings.database,
            app.kinds,
            scope,
            worker_id,
            engine_settings(settings, concurrency),
            notify=notify,
            condemned=lambda: None,
            events=events,
        )
        duties = await _duties(app, link, supervisor, Reporting(notify, events))
        engine.start()
        try:
            yield Drainer(runtime, link, engine, duties, events)
        finally:
            await engine.stop(0)
            await link.fetch(workers.condemn(worker_id, supervisor, "stopped"))
            await requeue_jobs(link, worker_id, Reporting(notify, events))
            await link.fetch(schedules.withdraw_app(supervisor))
            if await link.fetch(leases.release_all(supervisor)):
                notify(Wakeup.duty_free())


async def _duties(app: Tenure, link: Link, holder: str, reporting: Reporting) -> list[tuple[Duty, Term]]:
    """Taken from any holder: a test that drains an app waits for no other leader."""
    contact = Contact()
    context = DutyContext(settings=app.settings.leader, reporting=reporting, contact=contact, not_delivering=lambda: False)
    duties = [duty for duty in create_duties(context) if duty.name not in HOUSEKEEPING]
    for duty in duties:
        if isinstance(duty, Reaper):
            duty.patience = 0.0  # no outage has just ended, so expired leases are not renewed any more
    [won] = await link.fetch(leases.acquire(holder, [(duty.name, LONG) for duty in duties], {"host": "test"}, forced=True))
    terms = won.won
    return [(duty, Term(duty.name, holder, terms[duty.name], LONG)) for duty in duties]
