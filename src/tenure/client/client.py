"""`app.client()`: to find, list and control jobs and queues. A facade; the work is done in the modules it names."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

from tenure.client import cancel_delete as endings
from tenure.client import overview, rates, replays
from tenure.client.explain import Explanation, explained
from tenure.client.facts import Facts
from tenure.client.filters import Filters, FilterWords, to_id
from tenure.client.handle import Handle
from tenure.client.limits import LimitStatus, reset_limit, said_of, set_limit
from tenure.client.overview import FinishedCount, LeaderStatus, QueueStatus, Stats, WorkerStatus
from tenure.client.pages import LARGEST_PAGE, Page, check_limit, list_page
from tenure.client.portal import twin
from tenure.client.rates import Latency, MinuteCount
from tenure.client.runtime import ClientRuntime
from tenure.client.status import JobStatus
from tenure.client.unchanged import UNCHANGED, Unchanged
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError, JobNotFound, KeyTaken
from tenure.model.events import QueuePaused, QueueResumed
from tenure.model.health import Probe
from tenure.model.limits import LimitGiven, RateGiven
from tenure.model.names import check_name
from tenure.model.options import checks_options
from tenure.model.priorities import to_priority
from tenure.model.states import State
from tenure.store import jobs, leases, limits, queues, reports, workers

if TYPE_CHECKING:
    from tenure.client.report.life import Report
    from tenure.store.query import Fetch

DEFAULT_PAGE = 50


class Client:
    """Every method has a twin for code without an event loop: `find_sync`, `list_sync`, ...

    Filters, the same everywhere: state (one or several), kind, queue, priority, capability, key, parent, enqueued_after,
    enqueued_before, and input (what it contains).
    """

    def __init__(self, runtime: ClientRuntime) -> None:
        self._runtime = runtime

    # Looking at jobs

    async def find(self, job_id: UUID | str) -> JobStatus | None:
        """The job as it stands, live or finished."""
        rows = await self._reads()(jobs.find(str(to_id(job_id))))
        return JobStatus.from_row(rows[0]) if rows else None

    async def list(self, *, limit: int = DEFAULT_PAGE, after: str | None = None, **filters: Unpack[FilterWords]) -> Page:
        """The newest jobs that fit, at most `limit`; `after` is the `next` of the page before.

        A look is bounded: a page may be short, or even empty, and still have a `next`. `iterate` hides that.
        """
        return await list_page(self._reads(), Filters.of(**filters), check_limit(limit), after)

    async def iterate(self, **filters: Unpack[FilterWords]) -> AsyncIterator[JobStatus]:
        """All jobs that fit, newest first."""
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
        return explained(Facts.from_row(rows[0]))

    def handle(self, job_id: UUID | str) -> Handle[Any]:
        """A handle for a job that somebody else handed in. Asks nothing yet."""
        return Handle(to_id(job_id), "", self._runtime)

    async def wait(self, job_id: UUID | str, timeout: Duration | None = None) -> Any:
        """What the job resulted in, once it is done; see `Handle.result`."""
        return await self.handle(job_id).result(timeout)

    async def report(self, job_id: UUID | str) -> Report:
        """The job's whole life."""
        return await self.handle(job_id).report()

    # Deciding about jobs

    async def cancel(self, *ids: UUID | str, reason: str | None = None, by: str | None = None, conn: object | None = None) -> int:
        """Ends jobs that are not over yet, whatever they wait for; runs under way are aborted. Gives how many there were.

        Raises `JobNotFound` if none of them exists. With `conn` it is part of that transaction.
        """
        wanted = [to_id(given) for given in ids]
        if conn is not None:
            return await endings.cancel_borrowed(self._runtime, conn, wanted, reason, by)
        done = await endings.cancel(self._runtime, wanted, reason, by)
        if not done:
            await endings.check_known(self._reads(), wanted)
        return done

    def cancel_sync(self, *ids: UUID | str, reason: str | None = None, by: str | None = None, conn: object | None = None) -> int:
        if conn is None:
            return self._runtime.portal.run(self.cancel(*ids, reason=reason, by=by))
        return endings.cancel_borrowed_sync(self._runtime, conn, [to_id(given) for given in ids], reason, by)

    async def cancel_all(self, *, reason: str | None = None, by: str | None = None, **filters: Unpack[FilterWords]) -> int:
        """Ends all live jobs that fit. Gives how many there were."""
        return await endings.cancel_all(self._runtime, Filters.of(**filters), reason, by)

    async def retry(self, job_id: UUID | str, *, by: str | None = None) -> UUID:
        """Runs the job as soon as it can be. Of a finished job a new one is made, one at a time; gives the id of the one that
        will run."""
        return await replays.retry(self._runtime, to_id(job_id), by)

    async def replay(
        self,
        *ids: UUID | str,
        input: Any = UNCHANGED,  # noqa: A002 - the word for it
        priority: int | str | None = None,
        by: str | None = None,
    ) -> int:
        """Runs dead letters again, with all their attempts, and with other input or priority where given. Gives how many.

        Raises `KeyTaken` for those whose key another job has meanwhile; the others are replayed.
        """
        wanted = [to_id(given) for given in ids]
        number = None if priority is None else to_priority(priority)
        done, taken = await replays.replay(self._runtime, wanted, new_input=input, priority=number, by=by)
        if taken:
            raise KeyTaken(taken)
        if not done:
            await endings.check_known(self._reads(), wanted)
        return done

    async def replay_all(
        self,
        *,
        new_input: Any = UNCHANGED,
        new_priority: int | str | None = None,
        by: str | None = None,
        **filters: Unpack[FilterWords],
    ) -> int:
        """Runs all dead letters again that fit. Gives how many."""
        filters["state"] = filters.get("state") or State.DEAD_LETTER
        wanted = Filters.of(**filters)
        if wanted.states != frozenset({State.DEAD_LETTER}):
            raise ConfigError("replay_all is for dead letters only: leave state out, and use retry() for a single other job")
        return await replays.replay_all(
            self._runtime,
            wanted,
            new_input=new_input,
            priority=None if new_priority is None else to_priority(new_priority),
            by=by,
        )

    async def delete(self, *ids: UUID | str, force: bool = False) -> int:
        """Removes jobs, live or finished, and all that is kept of them. Running ones only with `force`. Gives how many."""
        wanted = [to_id(given) for given in ids]
        done = await endings.delete(self._runtime, wanted, force=force)
        if not done:
            await endings.check_known(self._reads(), wanted)
        return done

    # Queues

    @checks_options("client.pause()")
    async def pause(self, queue: str, *, reason: str | None = None, by: str | None = None) -> None:
        """From now on nothing of this queue is started; what runs goes on."""
        reason, by = endings.cleaned(reason), endings.cleaned(by)
        await self._runtime.session().fetch(queues.pause(_named(queue), reason, by))
        self._runtime.events.emit(QueuePaused(queue=queue, reason=reason, by=by))

    async def resume(self, queue: str) -> bool:
        """The queue goes on. False: it was not paused."""
        session = self._runtime.session()
        resumed = await session.fetch(queues.resume(_named(queue)))
        if resumed:
            session.tell(f"jobs {queue}")
            self._runtime.events.emit(QueueResumed(queue=queue))
        return bool(resumed)

    async def queues(self) -> builtins.list[QueueStatus]:
        """Every queue of which anything is known, by name."""
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
    ) -> dict[str, Any]:
        """Changes a limit (`kind:send_email`, `queue:mail`) for the whole fleet, at once, and until it is reset.

        What is left out stays as it is, None takes it away. Gives the rules that hold now.
        """
        words = said_of(name, concurrency, rate, fair_by)
        return await set_limit(self._runtime.session(), name, words, endings.cleaned(by))

    async def reset_limit(self, name: str, *, declared: bool = False) -> dict[str, Any] | None:
        """Takes back what was set at run time: the code's word counts again. With `declared`, that is taken back as well.

        Gives the rules that hold now; None: there was nothing to take back.
        """
        return await reset_limit(self._runtime.session(), name, declared=declared)

    # The fleet

    async def workers(self) -> builtins.list[WorkerStatus]:
        return [WorkerStatus.from_row(row) for row in await self._reads()(workers.find_all())]

    async def leaders(self) -> builtins.list[LeaderStatus]:
        return [LeaderStatus.from_row(row) for row in await self._reads()(leases.find_leaders())]

    async def stats(self) -> Stats:
        """Counts of live jobs and of what was done. Never looks at history."""
        count = self._counts()
        live = [overview.live_count(row) for row in await count(reports.count_live())]
        return Stats(live, [FinishedCount(*row) for row in await count(reports.count_finished())])

    async def minutes(
        self, last: Duration = "1h", *, queue: str | None = None, kind: str | None = None
    ) -> builtins.list[MinuteCount]:
        """What came in, started and ended, by the minute. Kept for a day."""
        query = reports.minutes(to_seconds(last, what="last"), queue, kind)
        return [MinuteCount(*row) for row in await self._counts()(query)]

    async def latencies(
        self, last: Duration = "1h", *, queue: str | None = None, kind: str | None = None
    ) -> builtins.list[Latency]:
        """How long jobs that finished had waited and ran, as percentiles, by queue and kind. Kept for 90 days."""
        query = reports.latencies(to_seconds(last, what="last"), queue, kind)
        return rates.latencies(await self._counts()(query))

    async def probe(self) -> Probe:
        """What slows a queue before anybody notices, as PostgreSQL sees it now."""
        from tenure.store.health import probe  # noqa: PLC0415 - brings the driver

        return await probe(self._runtime.session().fetch_all)

    def _reads(self) -> Fetch:
        """Repeated while PostgreSQL is away."""
        return self._runtime.session().reader(self._runtime.patience())

    def _counts(self) -> Fetch:
        """The same for statements that count whole tables."""
        return self._runtime.session().reader(self._runtime.patience(), wide=True)

    find_sync = twin(find)
    wait_sync = twin(wait)
    report_sync = twin(report)
    list_sync = twin(list)  # noqa: A003 - the method above
    explain_sync = twin(explain)
    cancel_all_sync = twin(cancel_all)
    retry_sync = twin(retry)
    replay_sync = twin(replay)
    replay_all_sync = twin(replay_all)
    delete_sync = twin(delete)
    pause_sync = twin(pause)
    resume_sync = twin(resume)
    queues_sync = twin(queues)
    limits_sync = twin(limits)
    set_limit_sync = twin(set_limit)
    reset_limit_sync = twin(reset_limit)
    workers_sync = twin(workers)
    leaders_sync = twin(leaders)
    stats_sync = twin(stats)
    minutes_sync = twin(minutes)
    latencies_sync = twin(latencies)
    probe_sync = twin(probe)


def _named(queue: str) -> str:
    if isinstance(queue, str) and "\0" in queue:
        raise ConfigError(f"queue is {queue!r}, but must be a name")
    return check_name(queue, what="queue")
