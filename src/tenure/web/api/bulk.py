"""Actions on all jobs that match a filter, a bounded number per call.

A call changes at most 10,000 jobs and works for at most ten seconds, then says whether more are left. To finish, or after a lost
connection or a crash, send the same call again: jobs that were changed do not match any more.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal
from uuid import UUID

from pydantic import Field
from typing_extensions import TypedDict

from tenure.client import cancel_delete, replays
from tenure.client.filters import Filters
from tenure.client.pages import look_finished, look_live, merge
from tenure.client.unchanged import UNCHANGED
from tenure.model.errors import JobNotFound, NotPossible
from tenure.model.states import HELD, LIVE, State
from tenure.web.api.job_filters import BulkFilter
from tenure.web.api_routes import ApiCall, RequestModel
from tenure.web.problems import Problem
from tenure.web.security.principal import Scope

Action = Literal["cancel", "retry", "replay", "delete"]

MOST = 10_000  # jobs per call
BATCH = 500
COUNT_WITHIN = 1.5  # seconds
ACT_WITHIN = 10.0

ELIGIBLE: dict[Action, frozenset[State]] = {
    "cancel": LIVE,
    "retry": frozenset({State.RETRY, State.SCHEDULED}),
    "replay": frozenset({State.DEAD_LETTER}),
    "delete": frozenset(State) - HELD,
}
"""The states that an action is for."""


class BulkBody(RequestModel):
    action: Action
    filter: BulkFilter
    dry_run: bool = Field(True, description="Only count. Nothing is changed unless this is false.")
    limit: int = Field(MOST, ge=1, le=MOST)
    reason: str | None = Field(None, max_length=1000, description="Of a cancellation.")


class BulkReply(TypedDict):
    action: Action
    dry_run: bool
    matched: int
    """Jobs that match and can be changed in this way. Counting stops at 10,000, or after 1.5 s."""
    changed: int
    more: bool
    """There may be more: send the same call again to change them."""


async def bulk(call: ApiCall, body: BulkBody) -> BulkReply:
    """Cancel, retry, replay or delete all jobs that match a filter. By default only counts them.

    At most 10,000 jobs per call; while `more` is true, send the same call again. Deleting needs the scope `admin`.
    """
    if body.action == "delete":
        call.principal.require(Scope.ADMIN)
    call.principal.require_filter(kind=body.filter.kind, queue=body.filter.queue)
    filters = _eligible(body)
    began = time.monotonic()
    if body.dry_run:
        matched, more = await _count(call, filters, body, began + COUNT_WITHIN)
        return {"action": body.action, "dry_run": True, "matched": matched, "changed": 0, "more": more}
    matched, changed, before = 0, 0, None
    more = True
    while more and matched < body.limit and time.monotonic() - began < ACT_WITHIN:
        ids, before = await _next(call, filters, body, before, min(BATCH, body.limit - matched))
        matched, more = matched + len(ids), before is not None
        changed += await _ACTIONS[body.action](call, ids, filters, body) if ids else 0
    call.note(after={"matched": matched, "changed": changed, "more": more})
    return {"action": body.action, "dry_run": False, "matched": matched, "changed": changed, "more": more}


def _eligible(body: BulkBody) -> Filters:
    """The filter, limited to the states that the action is for."""
    filters = body.filter.filters(body.filter.input)
    if filters == Filters():
        raise Problem(422, "filter-needed", "a bulk action needs a filter: give at least one field of `filter`")
    states = ELIGIBLE[body.action] if filters.states is None else filters.states & ELIGIBLE[body.action]
    if not states:
        allowed = ", ".join(sorted(ELIGIBLE[body.action]))
        raise Problem(422, "wrong-state", f"{body.action} is for jobs that are {allowed}: change filter.state")
    return replace(filters, states=states)


async def _count(call: ApiCall, filters: Filters, body: BulkBody, deadline: float) -> tuple[int, bool]:
    matched, before = 0, None
    while matched < body.limit:
        ids, before = await _next(call, filters, body, before, min(1000, body.limit - matched))
        matched += len(ids)
        if before is None or time.monotonic() > deadline:
            break
    return matched, before is not None


async def _next(
    call: ApiCall, filters: Filters, body: BulkBody, before: UUID | None, limit: int
) -> tuple[list[UUID], UUID | None]:
    """The next matching ids, newest first, and where to continue."""
    read = call.services.read
    looks = [await look_live(read, filters, before, limit + 1)]
    if body.action == "delete":
        looks.append(await look_finished(read, filters, before, limit + 1))
    return merge(looks, limit, filters.span[0])


async def _cancel(call: ApiCall, ids: Sequence[UUID], filters: Filters, body: BulkBody) -> int:
    """A job that has changed its state since is left alone."""
    return await cancel_delete.cancel(call.services.runtime, ids, body.reason, call.principal.name, filters.states)


async def _retry(call: ApiCall, ids: Sequence[UUID], filters: Filters, body: BulkBody) -> int:  # noqa: ARG001
    done = 0
    for job_id in ids:
        with suppress(NotPossible, JobNotFound):
            await call.services.client.retry(job_id, by=call.principal.name)
            done += 1
    return done


async def _replay(call: ApiCall, ids: Sequence[UUID], filters: Filters, body: BulkBody) -> int:  # noqa: ARG001
    done, taken = await replays.replay(call.services.runtime, ids, new_input=UNCHANGED, priority=None, by=call.principal.name)
    if taken:
        replays.warn_of_taken(taken)
    return done


async def _delete(call: ApiCall, ids: Sequence[UUID], filters: Filters, body: BulkBody) -> int:  # noqa: ARG001
    done = 0
    try:
        done = await cancel_delete.delete(call.services.runtime, ids, force=False)
    except NotPossible:  # some of them have started to run meanwhile
        for job_id in ids:
            with suppress(NotPossible):
                done += await cancel_delete.delete(call.services.runtime, [job_id], force=False)
    return done


_ACTIONS: dict[Action, Callable[[ApiCall, Sequence[UUID], Filters, BulkBody], Awaitable[int]]] = {
    "cancel": _cancel,
    "retry": _retry,
    "replay": _replay,
    "delete": _delete,
}
