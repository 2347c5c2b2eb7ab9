"""What can be done to a job."""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from tenure.client.bulk import OPERATOR_ACTIONS
from tenure.client.filters import to_id
from tenure.client.status import JobStatus
from tenure.client.unchanged import UNCHANGED
from tenure.model.durations import to_seconds
from tenure.model.errors import NotPossible
from tenure.model.names import is_builtin, shown
from tenure.model.options import check_option
from tenure.model.states import State
from tenure.web.api.jobs import visible
from tenure.web.api_routes import ApiCall, RequestModel
from tenure.web.job_views import FAILED
from tenure.web.kind_directory import check_args
from tenure.web.problems import invalid_value
from tenure.web.security.principal import Scope
from tenure.web.security.redaction import refuse_redacted
from tenure.web.security.trackers import LONGEST_LIFE


class CancelBody(RequestModel):
    reason: str | None = Field(None, max_length=1000)


class ReplayBody(RequestModel):
    input: Any = Field(None, description="Replaces the input. Left out: the input stays.")
    priority: int | str | None = None


class TrackerBody(RequestModel):
    expires_in: float | str = Field("1h", description='Seconds, or "15m". At most a day.')
    cancel: bool = Field(False, description="The holder may cancel the job.")


class Canceled(TypedDict):
    id: str
    canceled: bool
    """False: it was over already, or is a canceled workflow that still rolls back."""


class WillRun(TypedDict):
    id: str
    """The job that will run: a copy, if the job is finished."""


class Deleted(TypedDict):
    id: str
    deleted: bool


class TrackerReply(TypedDict):
    token: str
    expires_at: float
    """Seconds since 1970."""


async def cancel_job(call: ApiCall, body: CancelBody) -> Canceled:
    """Cancel a job in any live state. A running handler is aborted."""
    job = await visible(call)
    done = await call.services.client.cancel(job.id, reason=body.reason, by=call.principal.name)
    _forget_failure(call, job)
    call.note(before={"state": job.state}, after={"canceled": done > 0})
    return {"id": str(job.id), "canceled": done > 0}


async def retry_job(call: ApiCall) -> WillRun:
    """Run a job as soon as possible. A finished job stays as it is, and a copy of it runs."""
    job = await visible(call)
    _check_rerun(call, job)
    new_id = await call.services.client.retry(job.id, by=call.principal.name)
    _forget_failure(call, job)
    call.note(before={"state": job.state}, after={"id": str(new_id)})
    return {"id": str(new_id)}


async def replay_job(call: ApiCall, body: ReplayBody) -> WillRun:
    """Run a dead letter again, with all its attempts, and with another input or priority if given."""
    job = await visible(call)
    if job.state != State.DEAD_LETTER:
        raise NotPossible([job.id], f"is {job.state.value}, and only dead letters are replayed: retry it instead")
    _check_rerun(call, job)
    changed = "input" in body.model_fields_set
    if changed:
        if is_builtin(job.kind):
            raise NotPossible([job.id], f"is of kind {job.kind!r}, whose input cannot be changed: leave `input` out")
        refuse_redacted(body.input, "input")
        if job.kind not in call.services.runtime.kinds:
            await check_args(await call.services.kinds.published(job.kind, call.principal), body.input, "input")
    call.note(before={"state": job.state, "input": job.input if changed else None})
    await call.services.client.replay(
        job.id, input=body.input if changed else UNCHANGED, priority=body.priority, by=call.principal.name
    )
    _forget_failure(call, job)
    return {"id": str(job.id)}


def _forget_failure(call: ApiCall, job: JobStatus) -> None:
    """Groups of failures are counted once for all viewers: they must not show a job that was acted on."""
    if job.state in FAILED:
        call.services.stats.forget_failures()


def _check_rerun(call: ApiCall, job: JobStatus) -> None:
    """A bulk action needs the same scope as for the first time: more jobs may match by now."""
    action = job.input.get("action") if isinstance(job.input, dict) else None
    if is_builtin(job.kind) and action not in OPERATOR_ACTIONS:
        call.principal.require(Scope.ADMIN)


async def delete_job(call: ApiCall) -> Deleted:
    """Delete a job that is not running, and everything stored about it."""
    job = await visible(call)
    done = await call.services.client.delete(job.id)
    _forget_failure(call, job)
    call.note(before={"state": job.state, "kind": job.kind, "queue": job.queue}, after={"deleted": done > 0})
    return {"id": str(job.id), "deleted": done > 0}


async def create_tracker(call: ApiCall, body: TrackerBody) -> TrackerReply:
    """Sign a short-lived token for this one job, for the page of the user who started it."""
    job = await visible(call)
    seconds = check_option("expires_in", partial(to_seconds, what="expires_in"), body.expires_in)
    if not 0 < seconds <= LONGEST_LIFE:
        raise invalid_value("body.expires_in", f"is {shown(body.expires_in)}: give more than 0 and at most a day")
    made = await call.services.trackers.sign(to_id(str(job.id)), seconds, may_cancel=body.cancel)
    return {"token": made.token, "expires_at": made.expires_at}
