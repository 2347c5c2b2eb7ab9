"""`app.workflows`: finds and controls workflows, also in processes that do not import their code."""

from __future__ import annotations

import builtins
import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tenure.client.client import DEFAULT_PAGE, Client
from tenure.client.filters import to_id
from tenure.client.handle import Handle
from tenure.client.lock_retry import persist
from tenure.client.portal import sync_version
from tenure.client.runtime import ClientRuntime
from tenure.client.status import JobStatus
from tenure.client.workflow_status import StepStatus, WorkflowStatus
from tenure.model.errors import JobNotFound, NotPossible
from tenure.model.ids import uuid7
from tenure.model.names import check_name
from tenure.model.states import State
from tenure.model.wakeup import Wakeup
from tenure.store import jobs, kinds, workflows


class Workflows:
    """Every method has a sync version for code without an event loop: `get_sync`, `resume_sync`, ..."""

    def __init__(self, runtime: ClientRuntime) -> None:
        self._runtime = runtime
        self._client = Client(runtime)

    async def get(self, job_id: UUID | str) -> WorkflowStatus:
        """The workflow with its steps, live or finished."""
        id_ = to_id(job_id)
        read = self._runtime.session().reader(self._runtime.client_timeout())
        rows = await read(jobs.find(str(id_)))
        if not rows:
            raise JobNotFound(id_)
        return WorkflowStatus.of(JobStatus.from_row(rows[0]), await read(workflows.list_steps(id_)))

    async def list(
        self, *, kind: str | None = None, state: str | State | Sequence[str | State] | None = None, limit: int = DEFAULT_PAGE
    ) -> builtins.list[JobStatus]:
        """The newest workflows, at most `limit`: of one kind, or of all that this app or running workers define."""
        names = await self.kinds() if kind is None else [kind]
        pages = [await self._client.list(kind=name, state=state, limit=limit) for name in names]
        found = [job for page in pages for job in page.jobs]
        return sorted(found, key=lambda job: job.id, reverse=True)[:limit]

    async def waits(self, *ids: UUID | str) -> dict[UUID, builtins.list[StepStatus]]:
        """By workflow, the first three steps that it waits for: with name, what, state, output and due_at only."""
        rows = await self._runtime.session().fetch_all(workflows.summarize([to_id(given) for given in ids]))
        return {row.job_id: [StepStatus.of_wait(wait) for wait in row.waits] for row in rows}

    async def kinds(self) -> builtins.list[str]:
        """The names of all workflows that this app defines, or workers have declared."""
        rows = await self._runtime.session().fetch_all(kinds.find_all())
        definitions = {row.name: json.loads(row.definition) for row in rows}
        declared = {name for name, given in definitions.items() if isinstance(given, dict) and given.get("workflow")}
        return sorted(declared | {name for name, kind in self._runtime.kinds.items() if kind.is_workflow})

    async def signal(self, job_id: UUID | str, name: str, payload: Any = None, *, by: str | None = None) -> None:
        """Sends a signal to a workflow, as `handle.signal()`."""
        await self.handle(job_id).signal(name, payload, by=by)

    async def cancel(self, job_id: UUID | str, reason: str | None = None, *, by: str | None = None, force: bool = False) -> bool:
        """Cancels a workflow, also after it has begun again by `ctx.continue_as_new()`. If it has something to undo, it runs once
        more for that; `force=True` ends it at once, without undoing the rest. False: it was over, or rolls back already."""
        return await self.handle(job_id).cancel(reason, by=by, force=force)

    async def resume(self, job_id: UUID | str, *, version: str | None = None, by: str | None = None) -> None:
        """Lets a held workflow go on. `version`: from now on only workers with this version of its code run it; then it need not
        be held. Raises `NotPossible` if it is not held, or if its code has no versions."""
        id_, session = to_id(job_id), self._runtime.session()
        rows = await session.fetch(jobs.find(str(id_)))
        if not rows:
            raise JobNotFound(id_)
        capability = None if version is None else await self._versioned(rows[0], version)

        async def ask(batch: builtins.list[UUID]) -> builtins.list[UUID]:
            answers = await session.fetch(workflows.resume(id_, capability=capability, by=by))
            if not answers:
                raise NotPossible([id_], "is over, and cannot be resumed: fork it to run it again")
            row = answers[0]
            if row.moved:
                session.notify(Wakeup.new_jobs(row.queue))
                return []
            if not row.held:
                raise NotPossible([id_], f"is {row.state} and not held: wait, it continues by itself")
            return batch

        await persist([id_], ask)

    async def fork(self, job_id: UUID | str, *, from_step: str | None = None, by: str | None = None) -> Handle[Any]:
        """Runs a workflow again as a new job that keeps what was recorded before the step `from_step`; without it, everything.
        The old one stays as it is."""
        id_, new_id, session = to_id(job_id), uuid7(), self._runtime.session()
        rows = await session.fetch(workflows.fork(id_, new_id, step=from_step, by=by))
        if rows:
            session.notify(Wakeup.new_jobs(rows[0].queue))
            return Handle(new_id, rows[0].kind, self._runtime)
        if from_step is None or not await session.fetch(jobs.find(str(id_))):
            raise JobNotFound(id_)
        raise NotPossible([id_], f"has not recorded a step {from_step!r}: `tenure workflows show` lists its steps")

    def handle(self, job_id: UUID | str) -> Handle[Any]:
        return Handle(to_id(job_id), "", self._runtime)

    async def _versioned(self, job: jobs.JobRow, version: str) -> str:
        """The capability of workers with this version. A worker for it may start later, but if the code has no versions, none
        ever does, and the workflow would stay pending forever."""
        what = f"workflow {job.kind!r}: version"
        capability = check_name(f"{job.kind}@{check_name(version, what=what)}", what=what)
        if not any(known.startswith(f"{job.kind}@") for known in [job.capability or "", *await self._capabilities(job.kind)]):
            raise NotPossible(
                [job.id],
                f"is of kind {job.kind!r}, whose code has no version: resume it without one, or start a worker whose code has "
                "@app.workflow(version=...) first",
            )
        return capability

    async def _capabilities(self, kind: str) -> builtins.list[str]:
        """That this app and workers declare for the kind."""
        own = self._runtime.kinds[kind].capability if kind in self._runtime.kinds else None
        declared = [json.loads(row.definition) for row in await self._runtime.session().fetch(kinds.find(kind))]
        published = [given.get("capability") for given in declared if isinstance(given, dict)]
        return [known for known in [own, *published] if isinstance(known, str)]

    get_sync = sync_version(get)
    list_sync = sync_version(list)  # noqa: A003 - the method above
    waits_sync = sync_version(waits)
    kinds_sync = sync_version(kinds)
    signal_sync = sync_version(signal)
    cancel_sync = sync_version(cancel)
    resume_sync = sync_version(resume)
    fork_sync = sync_version(fork)
