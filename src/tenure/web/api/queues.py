"""Queues: how much waits in each, pausing and resuming."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from tenure.web.api_routes import ApiCall, RequestModel
from tenure.web.fleet_stats import QueueCounts
from tenure.web.problems import Problem


class PauseBody(RequestModel):
    reason: str | None = Field(None, max_length=1000)


class QueueList(TypedDict):
    queues: list[QueueCounts]


class PauseReply(TypedDict):
    queue: str
    paused: bool
    changed: bool
    """False: it was so already."""


async def list_queues(call: ApiCall) -> QueueList:
    """List every queue: its jobs by state, the age of its oldest pending job, what was done today, and whether it is paused.

    Live jobs are counted up to a bound, and `capped` names the states of which there may be more. Scheduled jobs, retries and
    workflows that wait for a time are counted up to 10,000 in all queues together, and so are dead letters: beyond that, they are
    capped in every queue. Pending jobs, and jobs that are blocked or wait for an event, are counted in each queue, up to its
    share of 10,000, at least 200. A token that is limited to kinds may not use this: the numbers are those of all kinds.
    """
    if call.principal.kinds is not None:
        call.principal.require_whole()
    counts = await call.services.stats.counts.get()
    return {"queues": [queue for queue in counts.queues if call.principal.sees(kind="", queue=queue.name)]}


async def pause_queue(call: ApiCall, body: PauseBody) -> PauseReply:
    """Start no more jobs of a queue until it is resumed. Running jobs continue.

    A token that is limited to kinds may not use this: it concerns all kinds.
    """
    queue = _named(call)
    changed = await call.services.client.pause(queue, reason=body.reason, by=call.principal.name)
    call.services.stats.counts.forget()
    call.note(before={"paused": not changed}, after={"paused": True})
    return {"queue": queue, "paused": True, "changed": changed}


async def resume_queue(call: ApiCall) -> PauseReply:
    """Start jobs of a queue again.

    A token that is limited to kinds may not use this, as in `pause`.
    """
    queue = _named(call)
    changed = await call.services.client.resume(queue)
    call.services.stats.counts.forget()
    call.note(before={"paused": changed}, after={"paused": False})
    return {"queue": queue, "paused": False, "changed": changed}


def _named(call: ApiCall) -> str:
    queue = call.path["queue"]
    if call.principal.kinds is not None or not call.principal.sees(kind="", queue=queue):
        raise Problem(403, "limited", f"this token does not include queue {queue!r} with all its kinds: use another one")
    return queue
