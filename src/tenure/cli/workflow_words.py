"""What a workflow waits for and what a step has returned, in a few words."""

from __future__ import annotations

from typing import Any

from tenure.cli import output
from tenure.client.report.words import gist, inline, value
from tenure.client.status import JobStatus
from tenure.client.workflow_status import StepStatus

LONGEST_RESULT = 60


def wait_words(step: StepStatus, job: JobStatus) -> str:
    """`event shipped (times out in 2 d)`, `signal approve`, `child pick_items`, `sleep until 2026-05-01 09:00`."""
    if step.state == "retry":
        return f"step {step.name} (tried again {output.ago(step.due_at)})"
    if step.what == "sleep":
        return f"sleep {step.name}" if step.due_at is None else f"sleep until {step.due_at.astimezone():%Y-%m-%d %H:%M}"
    if step.what in ("wait", "event"):
        timeout = "" if step.due_at is None else f" (times out {output.ago(step.due_at)})"
        return f"{_awaited(step, job)}{timeout}"
    return f"child {step.name}" if step.what == "call" else f"{step.what} {step.name}"


def signal_of(step: StepStatus, job: JobStatus) -> str | None:
    """The signal that the step waits for."""
    fields: dict[str, Any] = step.output if isinstance(step.output, dict) else {}
    # Signals are events whose key is the chain of the workflow.
    is_signal = step.what in ("wait", "event") and fields.get("key") in {str(job.id), str(job.chain_id)}
    return fields.get("event") if is_signal and step.state == "open" else None


def _awaited(step: StepStatus, job: JobStatus) -> str:
    fields: dict[str, Any] = step.output if isinstance(step.output, dict) else {}
    if (signal := signal_of(step, job)) is not None:
        return f"signal {signal}"
    key = f" with key {fields['key']}" if fields.get("key") else ""
    return f"event {fields.get('event', step.name)}{key}"


def result_words(step: StepStatus) -> str | None:
    """What the code of the workflow received, without how it is stored."""
    if step.error:
        return gist(step.error)
    returned = step.output
    if step.state == "done" and isinstance(returned, dict):
        if step.what == "event":
            returned = returned.get("payload")
        elif step.what == "call":
            if returned.get("error") and returned.get("state") != "completed":
                return gist(str(returned["error"]))
            returned = returned.get("output")
    return None if returned is None else inline(value(returned), LONGEST_RESULT)
