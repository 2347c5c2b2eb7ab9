"""`app.chains`: starts, finds, completes and deletes chains. No handlers are needed in this process."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from typing import Any, ParamSpec, TypeVar, Unpack, overload
from uuid import UUID

from tenure.client.cancel_delete import cleaned
from tenure.client.client import Client
from tenure.client.filters import FilterWords, to_id
from tenure.client.handle import Handle
from tenure.client.job import BoundJob, Call, Job
from tenure.client.named import call_by_name
from tenure.client.options import CallOptions, HasId, Options, call_options
from tenure.client.portal import sync_version
from tenure.client.runtime import ClientRuntime
from tenure.client.sending import send_call, send_call_sync, send_many, send_many_sync
from tenure.client.status import JobStatus
from tenure.flow import completing, deleting
from tenure.flow.access import access, access_sync, run_through
from tenure.flow.chain_status import Blocker, Chain, ChainLink, ChainPage, ChainSummary, Dependant
from tenure.model.durations import Duration
from tenure.model.errors import ConfigError, JobNotFound
from tenure.model.states import State
from tenure.model.system_data import SystemData
from tenure.store import blockers, chains, jobs
from tenure.store.query import Fetch

P = ParamSpec("P")
R = TypeVar("R")

MOST_LINKS = 1000
MOST_BLOCKERS = 100

AnyChain = HasId | UUID | str
"""A chain, by a handle or by the id of one of its jobs."""


def id_of(chain: AnyChain) -> UUID:
    return to_id(chain) if isinstance(chain, UUID | str) else chain.id


class Chains:
    """Every method has a sync version for code without an event loop: `get_sync`, `complete_sync`, ..."""

    def __init__(self, runtime: ClientRuntime) -> None:
        self._runtime = runtime

    # Starting

    @overload
    async def start(self, job: Job[Any, P, Any, R] | BoundJob[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]: ...
    @overload
    async def start(self, job: str, input: Mapping[str, Any] | None = None, /, **options: Unpack[CallOptions]) -> Handle[Any]: ...

    async def start(self, job: Any, /, *args: Any, **kwargs: Any) -> Handle[Any]:
        """Enqueues the first link: `await app.chains.start(reserve, order_id)`, or by name with the input and options, as
        `app.enqueue`. The same as `reserve.enqueue(order_id)`: every job starts a chain."""
        if not isinstance(job, str):
            started: Handle[Any] = await _defined(job).enqueue(*args, **kwargs)
            return started
        call, checked = self._by_name(job, *args, **kwargs)
        return await send_call(self._runtime, checked, call)

    @overload
    def start_sync(self, job: Job[Any, P, Any, R] | BoundJob[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]: ...
    @overload
    def start_sync(self, job: str, input: Mapping[str, Any] | None = None, /, **options: Unpack[CallOptions]) -> Handle[Any]: ...

    def start_sync(self, job: Any, /, *args: Any, **kwargs: Any) -> Handle[Any]:
        if not isinstance(job, str):
            started: Handle[Any] = _defined(job).enqueue_sync(*args, **kwargs)
            return started
        call, checked = self._by_name(job, *args, **kwargs)
        return send_call_sync(self._runtime, checked, call)

    def _by_name(
        self,
        kind: str,
        input: Mapping[str, Any] | None = None,  # noqa: A002 - the term used everywhere
        /,
        **options: Unpack[CallOptions],
    ) -> tuple[Call[Any], Options]:
        return call_by_name(self._runtime, kind, input, options)

    async def start_many(self, calls: Iterable[Call[Any]], *, conn: object | None = None) -> builtins.list[Handle[Any]]:
        """Starts many chains in one transaction: all of them, or none. `calls` come from `job.call(...)`."""
        return await send_many(self._runtime, calls, call_options("", "start_many()", conn=conn))

    def start_many_sync(self, calls: Iterable[Call[Any]], *, conn: object | None = None) -> builtins.list[Handle[Any]]:
        return send_many_sync(self._runtime, calls, call_options("", "start_many()", conn=conn))

    # Reading

    async def get(self, chain: AnyChain) -> Chain:
        """The chain with its links. Raises `JobNotFound`."""
        read = self._reads()
        found = await read(chains.find_links([await self._chain_id(read, id_of(chain))], most=MOST_LINKS))
        statuses = {row.id: JobStatus.from_row(row) for row in await read(jobs.find_all([row.id for row in found]))}
        links = [
            ChainLink(row.number, statuses[row.id], await _blockers(read, statuses[row.id]))
            for row in found
            if row.id in statuses
        ]
        if not links:
            raise JobNotFound(id_of(chain))
        chain_id = found[0].chain_id
        waiting = await read(blockers.find_dependent(str(chain_id), most=MOST_BLOCKERS))
        return Chain(chain_id, links, [Dependant.from_row(row) for row in waiting])

    async def list(self, *, limit: int = 50, after: str | None = None, **filters: Unpack[FilterWords]) -> ChainPage:
        """The newest chains whose first link matches, at most `limit`. `state` is that of the chain, i.e. of its last link."""
        wanted = _states(filters.pop("state", None))
        page = await Client(self._runtime).list(limit=limit, after=after, **filters)
        firsts = [job for job in page.jobs if job.chain_id == job.id]
        summaries = await self._summaries(firsts)
        return ChainPage([one for one in summaries if wanted is None or one.state in wanted], page.next)

    async def _summaries(self, firsts: builtins.list[JobStatus]) -> builtins.list[ChainSummary]:
        read = self._reads()
        continued = [job.id for job in firsts if job.next_id is not None]
        found = await read(chains.find_links(continued, most=MOST_LINKS)) if continued else []
        tails = {row.chain_id: row for row in found}  # the last of each
        rows = await read(jobs.find_all([row.id for row in tails.values()])) if tails else []
        lasts = {row.chain_id: JobStatus.from_row(row) for row in rows}
        return [
            ChainSummary(
                job.id,
                job.kind,
                last.state,
                tails[job.id].number if job.id in tails else 1,
                last.kind,
                last.id,
                job.enqueued_at,
                last.finished_at,
            )
            for job in firsts
            for last in [lasts.get(job.id, job)]
        ]

    async def wait(self, chain: AnyChain, timeout: Duration | None = None) -> Any:
        """Waits until the chain has ended and returns its result; see `Handle.result`."""
        found = id_of(chain)
        return await Handle(await self._chain_id(self._reads(), found), "", self._runtime).result(timeout)

    async def _chain_id(self, read: Fetch, given: UUID) -> UUID:
        """The chain that this job is a link of."""
        rows = await read(jobs.find(str(given)))
        return rows[0].chain_id if rows else given

    # Changing

    async def complete(self, chain: AnyChain, output: Any = None, *, by: str | None = None, conn: object | None = None) -> UUID:
        """Completes the chain without a worker: its live link ends with this output, in any state. A running handler is aborted
        (`already_completed`), and what it returns or raises is dropped. Returns the id of that link.

        Raises `NotPossible` if the chain has ended, `JobNotFound` if it does not exist. With `conn`, your connection or session,
        it is completed when that transaction commits.
        """
        runtime = self._runtime
        return await completing.complete(
            await access(runtime, conn), runtime.kinds, id_of(chain), output, by=cleaned(by), events=runtime.events
        )

    def complete_sync(self, chain: AnyChain, output: Any = None, *, by: str | None = None, conn: object | None = None) -> UUID:
        if conn is None:
            return self._runtime.portal.run(self.complete(chain, output, by=by))
        runtime, borrowed = self._runtime, access_sync(self._runtime, conn)
        return run_through(
            completing.complete(borrowed, runtime.kinds, id_of(chain), output, by=cleaned(by), events=runtime.events)
        )

    async def delete(self, *given: AnyChain, cascade: bool = False, conn: object | None = None) -> int:
        """Deletes chains with all their links and everything stored about them. A running handler is aborted (`not_found`).
        Returns how many chains existed.

        Raises `NotPossible` if other jobs wait for one of them. With `cascade` their chains are deleted as well.
        """
        ids = [id_of(chain) for chain in given]
        return await deleting.delete(await access(self._runtime, conn), ids, cascade=cascade, events=self._runtime.events)

    def delete_sync(self, *given: AnyChain, cascade: bool = False, conn: object | None = None) -> int:
        if conn is None:
            return self._runtime.portal.run(self.delete(*given, cascade=cascade))
        ids = [id_of(chain) for chain in given]
        borrowed = access_sync(self._runtime, conn)
        return run_through(deleting.delete(borrowed, ids, cascade=cascade, events=self._runtime.events))

    def _reads(self) -> Fetch:
        return self._runtime.session().reader(self._runtime.client_timeout())

    get_sync = sync_version(get)
    list_sync = sync_version(list)  # noqa: A003 - the method
    wait_sync = sync_version(wait)


async def _blockers(read: Fetch, job: JobStatus) -> list[Blocker]:
    if not SystemData.of(job.system).blockers:
        return []
    return [Blocker.from_row(row) for row in await read(blockers.find(str(job.id), most=MOST_BLOCKERS, outputs=False))]


def _defined(job: Any) -> Any:
    if not hasattr(job, "enqueue"):
        raise ConfigError(
            f"chains.start() got {job!r:.100}, which is not a job: pass a job, job.using(...), or the name of a kind"
        )
    return job


def _states(given: Any) -> frozenset[State] | None:
    if given is None:
        return None
    return frozenset(State(one) for one in ([given] if isinstance(given, str) else given))
