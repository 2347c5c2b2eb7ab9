"""Workflows: their steps, and what can be done to them. Everything about jobs applies to them as well."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from tenure.client.emitting import SIGNALED_TOO_LATE, emit, send_signal
from tenure.client.status import JobStatus
from tenure.model.errors import JobNotFound, NotPossible
from tenure.model.states import State
from tenure.store import chains
from tenure.store import workflows as statements
from tenure.web.api.job_actions import CancelBody, Canceled, WillRun
from tenure.web.api.jobs import find_unredacted, visible
from tenure.web.api_routes import ApiCall, RequestModel
from tenure.web.flow_views import WorkflowRow, WorkflowView, workflow_row, workflow_view
from tenure.web.security.redaction import refuse_redacted


class WorkflowsQuery(RequestModel):
    kind: str | None = Field(None, description="Left out: all that this server or workers define.")
    state: list[State] | None = Field(None, description="One or several states.")
    limit: int = Field(50, ge=1, le=200)


class SignalBody(RequestModel):
    name: str = Field(min_length=1)
    payload: Any = None


class EventBody(RequestModel):
    name: str = Field(min_length=1)
    payload: Any = None
    key: str | int | None = Field(None, description="Which of the events with this name.")


class CancelWorkflowBody(CancelBody):
    force: bool = Field(False, description="Cancel it at once, without undoing what is not undone yet.")


class ResumeBody(RequestModel):
    version: str | None = Field(
        None,
        min_length=1,
        description="From now on, only workers with this version of the code run it. Needs code with versions.",
    )


class ForkBody(RequestModel):
    from_step: str | None = Field(None, description="What was recorded from this step on is dropped. Left out: nothing.")


class WorkflowList(TypedDict):
    workflows: list[WorkflowRow]


class Signaled(TypedDict):
    id: str


class Emitted(TypedDict):
    name: str


class Resumed(TypedDict):
    id: str


async def list_workflows(call: ApiCall, query: WorkflowsQuery) -> WorkflowList:
    """List the newest workflows, with what each waits for."""
    read, allowed = call.services.read, call.principal.kinds
    kinds = [
        kind
        for kind in (await call.services.workflows.kinds() if query.kind is None else [query.kind])
        if allowed is None or kind in allowed
    ]
    newest = statements.list_newest(kinds, queues=call.principal.queues, states=query.state, limit=query.limit)
    ids = await read(newest) if kinds else []
    found = await find_unredacted(call, ids, None if query.state is None else frozenset(query.state))
    rows = await read(statements.summarize([one.job.id for one in found])) if found else []
    summaries, redaction = {row.job_id: row for row in rows}, call.services.redaction
    return {"workflows": [workflow_row(one.job, summaries.get(one.job.id), redaction, omitted=one.omitted) for one in found]}


async def get_workflow(call: ApiCall) -> WorkflowView:
    """Show a workflow with its steps, and what it waits for."""
    await visible(call)
    return workflow_view(await call.services.workflows.get(call.path["id"]), call.services.redaction)


async def signal_workflow(call: ApiCall, body: SignalBody) -> Signaled:
    """Send a signal to a workflow, which `ctx.wait_for_signal` receives."""
    job = await visible(call)
    refuse_redacted(body.payload, "body.payload")
    link = await _last_link(call, job)
    while not await _signal_link(call, job, link, body):
        before, link = link, await _last_link(call, job)
        if link.id == before.id:
            raise NotPossible([job.id], SIGNALED_TOO_LATE)
    return {"id": str(job.id)}


async def _signal_link(call: ApiCall, job: JobStatus, link: JobStatus, body: SignalBody) -> bool:
    """Whether this was the live link. Another one may have followed, which the principal may not see."""
    if not await _is_workflow(call, link.kind):
        raise NotPossible([job.id], "is not a workflow, and receives no signals: send them to a workflow")
    by = call.principal.name
    return await send_signal(call.services.runtime, job.id, body.name, body.payload, by, link=link.id)


async def emit_event(call: ApiCall, body: EventBody) -> Emitted:
    """Send an event to all workflows that wait for it, now or later. The first one with a name and key counts."""
    refuse_redacted(body.payload, "body.payload")
    await emit(call.services.runtime, body.name, body.payload, body.key, None)
    call.note(subject=body.name)
    return {"name": body.name}


async def cancel_workflow(call: ApiCall, body: CancelWorkflowBody) -> Canceled:
    """Cancel a workflow. If it has something to undo, it runs once more for that."""
    job = await visible(call)
    done = await _cancel_live_link(call, job, body)
    call.note(before={"state": job.state}, after={"canceled": done})
    return {"id": str(job.id), "canceled": done}


async def _cancel_live_link(call: ApiCall, job: JobStatus, body: CancelWorkflowBody) -> bool:
    """Each link is checked before it is canceled: it may have been created since the one before was read."""
    link, by = job, call.principal.name
    while not await call.services.client.cancel(link.id, reason=body.reason, by=by, force=body.force):
        before, link = link, await _last_link(call, job)
        if link.id == before.id:
            return False
    return True


async def resume_workflow(call: ApiCall, body: ResumeBody) -> Resumed:
    """Let a held workflow continue, or move one to another version of its code."""
    job = await visible(call)
    await call.services.workflows.resume(job.id, version=body.version, by=call.principal.name)
    call.note(before={"state": job.state}, after={"version": body.version})
    return {"id": str(job.id)}


async def fork_workflow(call: ApiCall, body: ForkBody) -> WillRun:
    """Run a workflow again as a new job that keeps what was recorded before a step. The old one stays as it is."""
    job = await visible(call)
    if not await _is_workflow(call, job.kind):
        raise NotPossible([job.id], "is not a workflow, and has no steps: retry it instead")
    handle = await call.services.workflows.fork(job.id, from_step=body.from_step, by=call.principal.name)
    call.note(after={"id": str(handle.id)})
    return {"id": str(handle.id)}


async def _last_link(call: ApiCall, job: JobStatus) -> JobStatus:
    """The live link of the job's chain, or the one that ended it. One that the principal may not see does not exist for them."""
    [tail] = await call.services.read(chains.find_tail(str(job.chain_id or job.id)))
    link = None if tail.id is None else await call.services.client.find(tail.id)
    if link is None or not call.principal.sees(kind=link.kind, queue=link.queue):
        raise JobNotFound(job.id)
    return link


async def _is_workflow(call: ApiCall, kind: str) -> bool:
    """By the code of this process, or by what workers have published."""
    own = call.services.runtime.kinds
    if kind in own:
        return own[kind].is_workflow
    known = await call.services.kinds.find(kind)
    return known is not None and known.kind.workflow is True
