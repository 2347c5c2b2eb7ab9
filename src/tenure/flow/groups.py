"""Groups: jobs that are enqueued together, and a job that represents all of them.

A group is a job of a kind that no worker claims. It is blocked by its members, and ended by the resolver when all of them
have ended. So everything that works for a chain works for a group: to wait for it, to block a job on it, to make it a member of
another group.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Never, TypeVar, overload
from uuid import UUID

from tenure.client.client import Client
from tenure.client.handle import OVER, Handle
from tenure.client.portal import sync_version
from tenure.client.runtime import ClientRuntime
from tenure.client.status import JobStatus
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import JobCanceled, JobNotFound, ResultTimeout
from tenure.model.names import GROUP_KIND
from tenure.model.outcomes import Cancel, Continue, Fail, Output, RetryAfter, Snooze
from tenure.model.states import State
from tenure.store import blockers, chains
from tenure.store.blockers import BlockerRow
from tenure.store.query import Fetch
from tenure.worker.run.blocker_results import blocker_result

R_co = TypeVar("R_co", covariant=True)
X = TypeVar("X", bound=Output | None)
Y = TypeVar("Y", bound=Output | None)

PAGE = 1000
"""Members that one statement reads."""


@dataclass(frozen=True, slots=True)
class GroupProgress:
    total: int
    """Members that were added."""
    ended: int
    open: bool
    """Members are still being added by `app.map()`, or the call was interrupted."""
    failed: UUID | None
    """The first chain that did not complete."""


class Group(Generic[R_co]):
    """A group of jobs. `after=[group]` blocks a job until all members have ended: it is the callback of the group."""

    def __init__(self, group_id: UUID, runtime: ClientRuntime, *, existed: bool = False) -> None:
        self.id = group_id
        self.existed = existed
        """An earlier call with the same key made it."""
        self._runtime = runtime

    @property
    def handle(self) -> Handle[Any]:
        """Of the job that represents the group."""
        return Handle(self.id, "", self._runtime)

    # As in `Handle.result`: type checkers remove the outcomes. The first overload is for `Group[Any]`.
    @overload
    async def results(self: Group[Never], timeout: Duration | None = None, *, return_exceptions: bool = False) -> list[Any]: ...
    @overload
    async def results(
        self: Group[X | Snooze | RetryAfter | Fail | Cancel | Continue[Y]],
        timeout: Duration | None = None,
        *,
        return_exceptions: bool = False,
    ) -> list[X | Y]: ...

    async def results(self: Group[Any], timeout: Duration | None = None, *, return_exceptions: bool = False) -> list[Any]:
        """Waits until all members have ended, and returns their results in order. If one did not complete, its `JobFailed` or
        `JobCanceled` is raised, that of the first; with `return_exceptions` they are among the results instead. A dead letter
        that was replayed and has completed since counts as completed."""
        await self._ended(timeout)
        found = [result async for _, result in self._pages()]
        if not return_exceptions and (failed := next((one for one in found if isinstance(one, Exception)), None)) is not None:
            raise failed
        return found

    @overload
    def results_sync(self: Group[Never], timeout: Duration | None = None, *, return_exceptions: bool = False) -> list[Any]: ...
    @overload
    def results_sync(
        self: Group[X | Snooze | RetryAfter | Fail | Cancel | Continue[Y]],
        timeout: Duration | None = None,
        *,
        return_exceptions: bool = False,
    ) -> list[X | Y]: ...

    def results_sync(self: Group[Any], timeout: Duration | None = None, *, return_exceptions: bool = False) -> list[Any]:
        return self._runtime.portal.run(self.results(timeout, return_exceptions=return_exceptions))

    async def iterate(self, timeout: Duration | None = None) -> AsyncIterator[R_co]:
        """The same for groups that are too large for a list. A failure is yielded as an exception."""
        await self._ended(timeout)
        async for _, result in self._pages():
            yield result

    def iterate_sync(self, timeout: Duration | None = None) -> Iterator[R_co]:
        """For code without an event loop. Reads a page of members at a time."""
        run, after = self._runtime.portal.run, 0
        run(self._ended(timeout))
        while page := run(self._page(after)):
            for row in page:
                yield blocker_result(row, self._runtime.kinds)
            after = page[-1].number

    async def _ended(self, timeout: Duration | None) -> None:
        seconds = None if timeout is None else to_seconds(timeout, what="timeout")
        status = await self.handle._over(seconds)  # noqa: SLF001 - what `result()` does first
        if status.state not in OVER:
            raise ResultTimeout(self.id, "group", status.state, seconds or 0.0)
        if status.state == State.CANCELED:
            raise JobCanceled(self.id, "group", status.error)

    async def _pages(self) -> AsyncIterator[tuple[BlockerRow, Any]]:
        after = 0
        while rows := await self._page(after):
            for row in rows:
                yield row, blocker_result(row, self._runtime.kinds)
            after = rows[-1].number

    async def _page(self, after: int) -> list[BlockerRow]:
        return await self._reads()(blockers.find(str(self.id), most=PAGE, after=after))

    async def progress(self) -> GroupProgress:
        rows = await self._reads()(blockers.find_blocked(str(self.id)))
        if not rows:
            raise JobNotFound(self.id)
        row = rows[0]
        return GroupProgress(row.total, row.total - row.missing, row.open, row.failed)

    async def status(self) -> JobStatus:
        """Of the job that represents the group."""
        return await self.handle.status()

    async def cancel(self, reason: str | None = None, *, by: str | None = None) -> int:
        """Cancels the group and its members, also those of groups that are members. Returns how many members were live."""
        client, read = Client(self._runtime), self._reads()
        await client.cancel(self.id, reason=reason, by=by)
        canceled, after = 0, 0
        inner: set[UUID] = set()
        while rows := await read(blockers.find(str(self.id), most=PAGE, after=after, outputs=False)):
            after = rows[-1].number
            canceled += await self._cancel_chains([row.chain_id for row in rows if not row.ended], inner, reason, by)
            # By an earlier call that was interrupted before it had canceled their members.
            inner |= {row.chain_id for row in rows if row.kind == GROUP_KIND and row.state == State.CANCELED}
        for group_id in inner:
            canceled += await Group(group_id, self._runtime).cancel(reason, by=by)
        return canceled

    async def _cancel_chains(self, open_chains: list[UUID], groups: set[UUID], reason: str | None, by: str | None) -> int:
        """Until no live link is left that was not asked: a link may be continued by the next one before it is canceled. `groups`
        gets those that are groups themselves."""
        asked: set[UUID] = set()
        canceled = 0
        while open_chains:
            links = await self._reads()(chains.find_links(open_chains, most=1))
            live = [link for link in links if link.live and link.id not in asked]
            if live:
                canceled += await Client(self._runtime).cancel(*(link.id for link in live), reason=reason, by=by)
            asked |= {link.id for link in live}
            groups |= {link.id for link in live if link.kind == GROUP_KIND}
            open_chains = [link.chain_id for link in live]
        return canceled

    def _reads(self) -> Fetch:
        return self._runtime.session().reader(self._runtime.client_timeout())

    progress_sync = sync_version(progress)
    status_sync = sync_version(status)
    cancel_sync = sync_version(cancel)

    def __repr__(self) -> str:
        return f"Group({self.id})"
