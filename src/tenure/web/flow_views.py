"""Chains and workflows as the API shows them."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from tenure.client.status import JobStatus
from tenure.client.workflow_status import StepStatus, WorkflowStatus
from tenure.flow.chain_status import Blocker, Chain, ChainLink
from tenure.store.workflows import AwaitedStep, StepSummaryRow
from tenure.web.job_views import JobView, job_view
from tenure.web.security.principal import Principal
from tenure.web.security.redaction import KnownSecrets, Redaction


class BlockerView(TypedDict):
    """A chain that a link waits for, or has waited for."""

    chain_id: str
    ended: bool
    kind: str | None
    """None, as `state`, also for one that you may not see."""
    state: str | None


class DependantView(TypedDict):
    """A job that waits for a chain, or has waited for it: a group, a workflow, or one that was enqueued behind it."""

    id: str
    kind: str
    state: str


class LinkView(TypedDict):
    """A job of a chain."""

    number: int
    """From 1."""
    job: JobView
    blockers: list[BlockerView]


class ChainView(TypedDict):
    """A chain at the time of the query."""

    id: str
    kind: str
    """Of its first link; if you may not see that one, of the first that you may see."""
    state: str
    """Of its last link that you may see, as are output, error and finished_at."""
    output: Any
    error: str | None
    enqueued_at: str
    finished_at: str | None
    links: list[LinkView]
    """In their order, at most the last 1,000; without those that you may not see."""
    dependants: list[DependantView]
    """At most 100; without those that you may not see."""


class StepView(TypedDict):
    name: str
    what: str
    """step, transaction, value, sleep, wait, event, call, start, patch, on_rollback, rollback, undo."""
    state: str
    """done, failed, retry, open; ended: it was open or to be tried again when the workflow ended."""
    output: Any
    error: str | None
    attempts: int
    started_at: str | None
    ended_at: str | None
    due_at: str | None
    """When a wait ends."""


class WaitView(TypedDict):
    """What a workflow waits for."""

    name: str
    what: str
    """sleep, wait, event, call; step for one that is tried again."""
    state: str
    """open, retry."""
    output: Any
    """Of an event its name and key; of a call its job."""
    due_at: str | None


class WorkflowRow(JobView):
    """A workflow in a list."""

    steps: int
    """How many are recorded; counted up to 1,000."""
    done: int
    waits: list[WaitView]
    """The first three."""
    held: str | None
    """Why it cannot continue before it is resumed."""


class WorkflowView(TypedDict):
    """A workflow at the time of the query."""

    job: JobView
    steps: list[StepView]
    status: Any
    """What the workflow has set by `ctx.set_status()`."""
    held: str | None
    """Why it cannot continue before it is resumed."""


def chain_view(chain: Chain, principal: Principal, redaction: Redaction) -> ChainView:
    """Of a chain of which the principal may see a link: as if there were no other links."""
    links = [link for link in chain.links if principal.sees(kind=link.job.kind, queue=link.job.queue)]
    first, last = links[0].job, redaction.job(links[-1].job)
    return {
        "id": str(chain.id),
        "kind": first.kind,
        "state": last.state.value,
        "output": last.output,
        "error": last.error,
        "enqueued_at": first.enqueued_at.isoformat(),
        "finished_at": None if last.finished_at is None else last.finished_at.isoformat(),
        "links": [_link(link, principal, redaction) for link in links],
        "dependants": [
            {"id": str(one.id), "kind": one.kind, "state": one.state.value}
            for one in chain.dependants
            if principal.sees(kind=one.kind, queue=one.queue)
        ],
    }


def _link(link: ChainLink, principal: Principal, redaction: Redaction) -> LinkView:
    blockers = [_blocker(one, sees=_sees_blocker(principal, one)) for one in link.blockers]
    return {"number": link.number, "job": job_view(redaction.job(link.job)), "blockers": blockers}


def _blocker(one: Blocker, *, sees: bool) -> BlockerView:
    kind, state = (one.kind, one.state) if sees else (None, None)
    return {"chain_id": str(one.chain_id), "ended": one.ended, "kind": kind, "state": state}


def _sees_blocker(principal: Principal, one: Blocker) -> bool:
    """Its queue is not known here, so users who are limited to queues see none."""
    return not principal.limited or (
        principal.queues is None and one.kind is not None and principal.sees(kind=one.kind, queue="")
    )


def workflow_view(found: WorkflowStatus, redaction: Redaction) -> WorkflowView:
    known = redaction.secrets_of(found.job)
    return {
        "job": job_view(redaction.job(found.job)),
        "steps": [_step(step, redaction, known) for step in found.steps],
        "status": known.hide(redaction.hide(found.status)),
        "held": known.hide(found.held),
    }


def workflow_row(job: JobStatus, summary: StepSummaryRow | None, redaction: Redaction, *, omitted: bool) -> WorkflowRow:
    known, view = redaction.secrets_of(job), job_view(redaction.job(job), omitted=omitted)
    is_waiting = view["state"] == "waiting"
    waits = [] if summary is None or not is_waiting else summary.waits
    return {
        **view,
        "steps": 0 if summary is None else summary.steps,
        "done": 0 if summary is None else summary.done,
        "waits": [_wait(one, redaction, known) for one in waits],
        "held": (view["system"] or {}).get("held") if is_waiting else None,
    }


def _wait(step: AwaitedStep, redaction: Redaction, known: KnownSecrets) -> WaitView:
    return {
        "name": step.name,
        "what": step.what,
        "state": step.state,
        "output": known.hide(redaction.hide(step.output)),
        "due_at": None if step.due_at is None else step.due_at.isoformat(),
    }


def _step(step: StepStatus, redaction: Redaction, known: KnownSecrets) -> StepView:
    shown = step.to_json()
    hidden = {"output": known.hide(redaction.hide(step.output)), "error": known.hide(step.error)}
    return {**shown, **hidden}  # type: ignore[typeddict-item]
