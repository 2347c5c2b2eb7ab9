"""Workflows: their steps, and what can be done to them. Everything about jobs applies to them as well."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from tenure.client.emitting import emit
from tenure.client.status import JobStatus
from tenure.model.errors import NotPossible
from tenure.model.states import State
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
    if not await _leads_to_workflow(call, job):
        raise NotPossible([job.id], "is not a workflow, and receives no signals: send them to a workflow")
    refuse_redacted(body.payload, "body.payload")
    await call.services.workflows.signal(job.id, body.name, body.payload, by=call.principal.name)
    return {"id": str(job.id)}


async def emit_event(call: ApiCall, body: EventBody) -> Emitted:
    """Send an event to all workflows that wait for it, now or later. The first one with a name and key counts."""
    refuse_redacted(body.payload, "body.payload")
    await emit(call.services.runtime, body.name, body.payload, body.key, None)
    call.note(subject=body.name)
    return {"name": body.name}


async def cancel_workflow(call: ApiCall, body: CancelWorkflowBody) -> Canceled:
    """Cancel a workflow. If it has something to undo, it runs once more for that."""
    job = await visible(call)
    done = await call.services.workflows.cancel(job.id, body.reason, by=call.principal.name, force=body.force)
    call.note(before={"state": job.state}, after={"canceled": done})
    return {"id": str(job.id), "canceled": done}


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


async def _leads_to_workflow(call: ApiCall, job: JobStatus) -> bool:
    """A signal to any link of a chain reaches its workflow. One that the principal may not see receives none of theirs."""
    if await _is_workflow(call, job.kind):
        return True
    links = (await call.services.chains.get(job.id)).links
    kinds = {link.job.kind for link in links if call.principal.sees(kind=link.job.kind, queue=link.job.queue)}
    return any([await _is_workflow(call, kind) for kind in kinds - {job.kind}])


async def _is_workflow(call: ApiCall, kind: str) -> bool:
    """By the code of this process, or by what workers have published."""
    own = call.services.runtime.kinds
    if kind in own:
        return own[kind].is_workflow
    known = await call.services.kinds.find(kind)
    return known is not None and known.kind.workflow is True
