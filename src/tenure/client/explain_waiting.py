"""Why a workflow waits."""

from __future__ import annotations

from tenure.client.facts import ExplainFacts, Reason
from tenure.model.system_data import SystemData
from tenure.store.obstacles import WaitingStep

_VERBS = {"sleep": "it sleeps", "wait": "it waits for an event", "event": "it waits for an event", "call": "it waits for a job"}


def waits_for(facts: ExplainFacts) -> list[Reason]:
    """What wakes it, or why a person must decide."""
    held = SystemData.of(facts.job.system).held
    if held is not None:
        call = f"; then: app.workflows.resume({str(facts.job.id)!r})"
        return [Reason("held", f"it is held, because its code differs from what it has recorded: {held}", call)]
    if not facts.waits:
        return [Reason("waiting", "it waits for a time, an event or another job, and continues by itself when that happens")]
    found = [Reason("waiting", _waiting_text(step)) for step in facts.waits]
    if not facts.resolver:
        text = "no process wakes workflows when their events are sent: the resolver duty has no holder; start a worker"
        found.append(Reason("no_resolver", text))
    return found


def _waiting_text(step: WaitingStep) -> str:
    what = "a step is tried again" if step.state == "retry" else _VERBS.get(step.what, "it waits")
    event = f" {step.event!r}" + (f" with key {step.key!r}" if step.key else "") if step.event else ""
    until = f" until {step.due_at}" if step.due_at else ""
    return f"{what}{event} ({step.name!r}){until}"
