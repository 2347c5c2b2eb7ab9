"""`app.client()`: finds, lists and controls jobs and queues. A facade over the modules it imports."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

from tenure.client import cancel_delete, overview, rates, replays
from tenure.client.explain import Explanation, explained
from tenure.client.facts import ExplainFacts
from tenure.client.filters import Filters, FilterWords, to_id
from tenure.client.handle import Handle
from tenure.client.limits import LimitStatus, change_of, reset_limit, set_limit
from tenure.client.overview import FinishedCount, LeaderStatus, QueueStatus, Stats, WorkerStatus
from tenure.client.pages import LARGEST_PAGE, Page, check_limit, list_page
from tenure.client.portal import sync_version
from tenure.client.rates import Latency, MinuteCount
from tenure.client.runtime import ClientRuntime
from tenure.client.status import JobStatus
from tenure.client.unchanged import UNCHANGED, Unchanged
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError, JobNotFound, KeyTaken
from tenure.model.events import QueuePaused, QueueResumed
from tenure.model.health import Probe
from tenure.model.limits import LimitGiven, LimitRules, RateGiven
from tenure.model.names import check_name, shown
from tenure.model.options import check_option, checks_options
from tenure.model.priorities import to_priority
from tenure.model.states import State
from tenure.model.wakeup import Wakeup
from tenure.store import jobs, leases, limits, queues, reports, workers

if TYPE_CHECKING:
    from tenure.client.report.life import Report
    from tenure.store.query import Fetch

DEFAULT_PAGE = 50


class Client:
    """Every method has a sync version for code without an event loop: `find_sync`, `list_sync`, ...

    All methods take the same filters: state (one or several), kind, queue, priority, capability, key, parent, enqueued_after,
    enqueued_before, and input (what it contains).
    """

    def __init__(self, runtime: ClientRuntime) -> None:
        self._runtime = runtime

    # Reading jobs

    async def find(self, job_id: UUID | str) -> JobStatus | None:
        """The job, live or finished. None: there is no such job."""
        rows = await self._reads()(jobs.find(str(to_id(job_id))))
        return JobStatus.from_row(rows[0]) if rows else None

    async def list(self, *, limit: int = DEFAULT_PAGE, after: str | None = None, **filters: Unpack[FilterWords]) -> Page:
        """The newest matching jobs, at most `limit`. `after` is the `next` of the previous page.

        A page reads a bounded number of rows: it may be short, or even empty, and still have a `next`. `iterate` hides that.
        """
        return await list_page(self._reads(), Filters.of(**filters), check_limit(limit), after)

    async def iterate(self, **filters: Unpack[FilterWords]) -> AsyncIterator[JobStatus]:
        """All matching jobs, newest first."""
        after: str | None = None
        while True:
            page = await self.list(limit=LARGEST_PAGE, after=after, **filters)
            for job in page.jobs:
                yield job
            if (after := page.next) is None:
                return

    def iterate_sync(self, **filters: Unpack[FilterWords]) -> Iterator[JobStatus]:
        after: str | None = None
        while True:
            page = self.list_sync(limit=LARGEST_PAGE, after=after, **filters)
            yield from page.jobs
            if (after := page.next) is None:
                return

    async def explain(self, job_id: UUID | str) -> Explanation:
        """Why the job is not running, and what to do about it."""
        wanted = to_id(job_id)
        rows = await self._reads()(reports.explain(wanted))
        if not rows:
            raise JobNotFound(wanted)
        return explained(ExplainFacts.from_row(rows[0]))

    def handle(self, job_id: UUID | str, kind: str = "") -> Handle[Any]:
        """A handle for a job that was enqueued elsewhere. Sends no statement."""
        return Handle(to_id(job_id), kind, self._runtime)

    async def wait(self, job_id: UUID | str, timeout: Duration | None = None) -> Any:
        """Waits for the job and returns its result; see `Handle.result`."""
        return await self.handle(job_id).result(timeout)

    async def report(self, job_id: UUID | str) -> Report:
        """The history of the job: attempts, errors, timeline."""
        return await self.handle(job_id).report()

    # Changing jobs

    async def cancel(
        self, *ids: UUID | str, reason: str | None = None, by: str | None = None, conn: object | None = None, force: bool = False
    ) -> int:
        """Cancels live jobs in any state; running handlers are aborted. Returns how many were canceled. A workflow that has
        something to undo runs once more for that, and is left alone while it rolls back; `force=True` ends it at once, without
        undoing the rest.

        Raises `JobNotFound` if none of them exists. With `conn`, the jobs are canceled when that transaction commits.
        """
        wanted = [to_id(given) for given in ids]
        if conn is not None:
            return await cancel_delete.cancel_borrowed(self._runtime, conn, wanted, reason, by, force=force)
        done = await cancel_delete.cancel(self._runtime, wanted, reason, by, force=force)
        if not done:
            await cancel_delete.check_known(self._reads(), wanted)
        return done

    def cancel_sync(
        self, *ids: UUID | str, reason: str | None = None, by: str | None = None, conn: object | None = None, force: bool = False
    ) -> int:
        if conn is None:
            return self._runtime.portal.run(self.cancel(*ids, reason=reason, by=by, force=force))
        return cancel_delete.cancel_borrowed_sync(self._runtime, conn, [to_id(given) for given in ids], reason, by, force=force)

    async def cancel_all(self, *, reason: str | None = None, by: str | None = None, **filters: Unpack[FilterWords]) -> int:
        """Cancels all matching live jobs. Returns how many."""
        return await cancel_delete.cancel_all(self._runtime, Filters.of(**filters), reason, by)

    async def retry(self, job_id: UUID | str, *, by: str | None = None) -> UUID:
        """Runs the job as soon as possible. A finished job stays as it is and is copied, one copy at a time. Returns the id of
        the job that will run."""
        return await replays.retry(self._runtime, to_id(job_id), by)

    async def replay(
        self,
        *ids: UUID | str,
        input: Any = UNCHANGED,  # noqa: A002 - the term used everywhere
        priority: int | str | None = None,
        by: str | None = None,
    ) -> int:
        """Runs dead letters again, with all their attempts, and with a new input or priority if given. Returns how many.

        Raises `KeyTaken` for dead letters whose key another job has now; the others are replayed.
        """
        wanted = [to_id(given) for given in ids]
        number = None if priority is None else to_priority(priority)
        done, taken = await replays.replay(self._runtime, wanted, new_input=input, priority=number, by=by)
        if taken:
            raise KeyTaken(taken)
        if not done:
            await cancel_delete.check_known(self._reads(), wanted)
        return done

    async def replay_all(
        self,
        *,
        new_input: Any = UNCHANGED,
        new_priority: int | str | None = None,
        by: str | None = None,
        **filters: Unpack[FilterWords],
    ) -> int:
        """Runs all matching dead letters again. Returns how many."""
        filters["state"] = filters.get("state") or State.DEAD_LETTER
        wanted = Filters.of(**filters)
        if wanted.states != frozenset({State.DEAD_LETTER}):
            raise ConfigError(
                "replay_all takes dead letters only: leave state out, or use retry() for a single job in another state"
            )
        return await replays.replay_all(
            self._runtime,
            wanted,
            new_input=new_input,
            priority=None if new_priority is None else to_priority(new_priority),
            by=by,
        )

    async def delete(self, *ids: UUID | str, force: bool = False) -> int:
        """Deletes jobs, live or finished, and everything stored about them. Running jobs only with `force`. Returns how many."""
        wanted = [to_id(given) for given in ids]
        done = await cancel_delete.delete(self._runtime, wanted, force=force)
        if not done:
            await cancel_delete.check_known(self._reads(), wanted)
        return done

    # Queues

    @checks_options("client.pause()")
    async def pause(self, queue: str, *, reason: str | None = None, by: str | None = None) -> bool:
        """Starts no more jobs of this queue until it is resumed. Running jobs continue. False: it was paused already."""
        reason, by = cancel_delete.cleaned(reason), cancel_delete.cleaned(by)
        [changed] = await self._runtime.session().fetch(queues.pause(_named(queue), reason, by))
        self._runtime.events.emit(QueuePaused(queue=queue, reason=reason, by=by))
        return changed

    async def resume(self, queue: str) -> bool:
        """Starts jobs of this queue again. False: it was not paused."""
        session = self._runtime.session()
        resumed = await session.fetch(queues.resume(_named(queue)))
        if resumed:
            session.notify(Wakeup.new_jobs(queue))
            self._runtime.events.emit(QueueResumed(queue=queue))
        return bool(resumed)

    async def queues(self) -> builtins.list[QueueStatus]:
        """Every known queue, by name."""
        return overview.queue_statuses(await self._counts()(queues.find_all()), await self.stats())

    # Limits

    async def limits(self) -> builtins.list[LimitStatus]:
        """Every limit that the code declares or that was set at run time, by name."""
        return [LimitStatus.from_row(row) for row in await self._counts()(limits.find())]

    async def set_limit(
        self,
        name: str,
        *,
        concurrency: LimitGiven | Unchanged | None = UNCHANGED,
        rate: RateGiven | Unchanged | None = UNCHANGED,
        fair_by: str | Unchanged | None = UNCHANGED,
        by: str | None = None,
    ) -> LimitRules:
        """Changes a limit (`kind:send_email`, `queue:mail`) for all workers, at once, until it is reset.

        An option that is left out stays unchanged; None removes it. Returns the rules in effect.
        """
        change = change_of(name, concurrency, rate, fair_by)
        return await set_limit(self._runtime.session(), name, change, cancel_delete.cleaned(by))

    async def reset_limit(self, name: str, *, declared: bool = False) -> LimitRules | None:
        """Removes what was set at run time: the rules that the code declares apply again. With `declared`, removes those as well.

        Returns the rules in effect; None: there was nothing to remove.
        """
        return await reset_limit(self._runtime.session(), name, declared=declared)

    # Workers and statistics

    async def workers(self) -> builtins.list[WorkerStatus]:
        return [WorkerStatus.from_row(row) for row in await self._reads()(workers.find_all())]

    async def drain_workers(self, *ids: UUID | str) -> builtins.list[UUID]:
        """Workers of the same supervisors as these claim no more jobs. Running ones continue, and the processes stay, until they
        are stopped or `resume_workers` is called. Returns the ids of all workers concerned; those that are gone are not among
        them."""
        return await self._drain(ids, draining=True)

    async def resume_workers(self, *ids: UUID | str) -> builtins.list[UUID]:
        """The contrary of `drain_workers`."""
        return await self._drain(ids, draining=False)

    async def _drain(self, ids: Iterable[UUID | str], *, draining: bool) -> builtins.list[UUID]:
        query = workers.drain([str(to_id(worker_id)) for worker_id in ids], draining=draining)
        return [UUID(found) for found in await self._runtime.session().fetch(query)]

    async def leaders(self) -> builtins.list[LeaderStatus]:
        return [LeaderStatus.from_row(row) for row in await self._reads()(leases.find_leaders())]

    async def stats(self) -> Stats:
        """The number of live jobs and of outcomes. Does not read history."""
        count = self._counts()
        live = [overview.live_count(row) for row in await count(reports.count_live())]
        return Stats(live, [FinishedCount(**row._asdict()) for row in await count(reports.count_finished())])

    async def minutes(
        self, last: Duration = "1h", *, queue: str | None = None, kind: str | None = None
    ) -> builtins.list[MinuteCount]:
        """Jobs enqueued, started and ended, per minute. Kept for a day."""
        query = reports.minutes(to_seconds(last, what="last"), queue, kind)
        return [MinuteCount(**row._asdict()) for row in await self._counts()(query)]

    async def latencies(
        self, last: Duration = "1h", *, queue: str | None = None, kind: str | None = None
    ) -> builtins.list[Latency]:
        """How long finished jobs waited and ran, as percentiles, by queue and kind. Kept for 90 days."""
        query = reports.latencies(to_seconds(last, what="last"), queue, kind)
        return rates.latencies(await self._counts()(query))

    async def probe(self) -> Probe:
        """Checks PostgreSQL for conditions that slow down queues."""
        from tenure.store.health import probe  # noqa: PLC0415 - imports the driver

        return await probe(self._runtime.session().fetch_all)

    def _reads(self) -> Fetch:
        """Repeats statements while PostgreSQL is away."""
        return self._runtime.session().reader(self._runtime.client_timeout())

    def _counts(self) -> Fetch:
        """The same for statements that count whole tables."""
        return self._runtime.session().reader(self._runtime.client_timeout(), wide=True)

    find_sync = sync_version(find)
    wait_sync = sync_version(wait)
    report_sync = sync_version(report)
    list_sync = sync_version(list)  # noqa: A003 - the method above
    explain_sync = sync_version(explain)
    cancel_all_sync = sync_version(cancel_all)
    retry_sync = sync_version(retry)
    replay_sync = sync_version(replay)
    replay_all_sync = sync_version(replay_all)
    delete_sync = sync_version(delete)
    pause_sync = sync_version(pause)
    resume_sync = sync_version(resume)
    queues_sync = sync_version(queues)
    limits_sync = sync_version(limits)
    set_limit_sync = sync_version(set_limit)
    reset_limit_sync = sync_version(reset_limit)
    workers_sync = sync_version(workers)
    drain_workers_sync = sync_version(drain_workers)
    resume_workers_sync = sync_version(resume_workers)
    leaders_sync = sync_version(leaders)
    stats_sync = sync_version(stats)
    minutes_sync = sync_version(minutes)
    latencies_sync = sync_version(latencies)
    probe_sync = sync_version(probe)


def _named(queue: str) -> str:
    if isinstance(queue, str) and "\0" in queue:
        raise ConfigError(f"queue is {shown(queue)}, but must be a name: give a text without NUL", option="queue")
    return check_option("queue", partial(check_name, what="queue"), queue)
