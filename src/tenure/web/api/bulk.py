"""Actions on many jobs: those that match a filter are changed by a job, those that are named by the call itself."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic import Field
from typing_extensions import TypedDict

from tenure.client.bulk import BATCH, BULK, ELIGIBLE, OPERATOR_ACTIONS, Action, BulkAction
from tenure.client.filters import Filters
from tenure.client.named import call_unchecked
from tenure.client.options import call_options
from tenure.client.sending import send_call
from tenure.model.names import is_builtin
from tenure.store import live
from tenure.store.jobs import JobRow
from tenure.web.api.job_filters import BulkFilter
from tenure.web.api.jobs import CHECKED_AT_ONCE, find_visible, shown
from tenure.web.api.shown_filters import ShownFilter
from tenure.web.api_routes import ApiCall, Reply, RequestModel
from tenure.web.fleet_stats import FleetCounts
from tenure.web.job_views import JobView
from tenure.web.problems import invalid_value
from tenure.web.security.principal import Scope
from tenure.web.security.redaction import without_key

MOST_COUNTED = 10_000
COUNT_WITHIN = 1.5  # seconds
ACT_WITHIN = 10.0
GROUP_PERIOD = 30 * 86400.0  # seconds: how long ago the jobs of a group may have failed
ATTEMPTS = 5
TRACKED_FOR = 86400.0  # seconds


class BulkBody(RequestModel):
    action: Action
    filter: BulkFilter
    dry_run: bool = Field(True, description="Only count. Nothing is changed unless this is false.")
    reason: str | None = Field(None, max_length=1000, description="Of a cancellation.")

    def recorded(self) -> dict[str, Any]:
        shown: dict[str, Any] = without_key(super().recorded())
        return shown


class BulkReply(TypedDict):
    action: Action
    dry_run: bool
    matched: int
    """Jobs that match and can be changed in this way. Counting stops at 10,000, or after 1.5 s."""
    more: bool
    """There may be more than were counted, or jobs that the call itself changes are left: repeat it."""
    changed: int
    """How many the call itself has changed."""
    job: JobView | None
    """The job that changes those that match a filter. Its output has the numbers of jobs that matched and that were changed."""
    tracker: str | None
    """Access to that job for a day, if your own token is limited to some kinds or queues."""


async def bulk(call: ApiCall, body: BulkBody) -> BulkReply | Reply:
    """Cancel, retry, replay or delete many jobs. Counts only, unless `dry_run` is false.

    All that match a filter are changed by a job of the kind `tenure.bulk`, which every worker runs: follow, cancel or retry it
    like any other. It changes jobs that were enqueued before this call. Jobs that are named, by `ids`, a group of failures or a
    `key`, are changed by the call itself, and so are those that match an `input` with a member `value`, or with texts or numbers
    in lists: both are compared with what is shown, as in `GET /jobs`. Deleting needs the scope `admin`. Jobs of built-in kinds,
    such as those of other bulk actions, do not match a filter, and are not retried or replayed together with others.
    """
    if body.action not in OPERATOR_ACTIONS:
        call.principal.require(Scope.ADMIN)
    if body.filter.names_jobs:
        return await _bulk_named(call, body)
    call.principal.require_filter(kind=body.filter.kind, queue=body.filter.queue)
    shown_filter = ShownFilter.of(call.services.redaction, body.filter.key, body.filter.input, "body.filter.input")
    if shown_filter.is_needed:
        return await _bulk_shown(call, body, shown_filter)
    what = BulkAction(action=body.action, filters=body.filter.filters(body.filter.input))
    matched, more = await what.count(call.services.read, MOST_COUNTED, COUNT_WITHIN)
    reply: BulkReply = {
        "action": body.action,
        "dry_run": body.dry_run,
        "matched": matched,
        "more": more,
        "changed": 0,
        "job": None,
        "tracker": None,
    }
    if body.dry_run:
        return reply
    await _enqueue(call, body, reply, expected=None if more else matched)
    return Reply(reply, 202)


async def _bulk_named(call: ApiCall, body: BulkBody) -> BulkReply:
    filters = body.filter.filters(body.filter.input)
    if filters != replace(Filters(), states=filters.states) or None not in (body.filter.ids, body.filter.failure):
        raise invalid_value("body.filter", "has ids or failure, and more: give one of them, and `state` if needed")
    what = BulkAction(
        action=body.action,
        filters=Filters(states=filters.states or ELIGIBLE[body.action]),
        reason=body.reason,
        by=call.principal.name,
    )
    if body.filter.failure is None:
        ids, more = list(dict.fromkeys(body.filter.ids or [])), False
    else:
        ids, more = await _group_ids(call, body.filter.failure)
    return await _change(call, body, what, await _fitting(call, ids, what), more=more)


async def _bulk_shown(call: ApiCall, body: BulkBody, shown_filter: ShownFilter) -> BulkReply:
    """Of the jobs that match, those that match as they are shown: neither their number nor what becomes of the others may show
    a hidden value. Workers do not know what is hidden, so this call changes them."""
    filters = body.filter.filters(body.filter.input)
    what = BulkAction(action=body.action, filters=filters, reason=body.reason, by=call.principal.name)
    found, more, until = list[UUID](), False, time.monotonic() + COUNT_WITHIN
    async for ids in what.batches(call.services.read, CHECKED_AT_ONCE):
        views = await find_visible(call, ids, what.filters.states)
        found += [UUID(job["id"]) for job in views if shown_filter.matches(job)]
        if more := len(found) >= MOST_COUNTED or time.monotonic() > until:
            break
    if more and not found:
        # Another call would look at the same jobs again.
        raise invalid_value("body.filter", "was not found to match any job in time: narrow it by kind, queue or time of enqueue")
    return await _change(call, body, what, found[:MOST_COUNTED], more=more)


async def _change(call: ApiCall, body: BulkBody, what: BulkAction, fitting: list[UUID], *, more: bool) -> BulkReply:
    """Changes these jobs, unless they are only counted."""
    changed, began = 0, time.monotonic()
    for start in () if body.dry_run else range(0, len(fitting), BATCH):
        if time.monotonic() - began > ACT_WITHIN:
            more = True
            break
        changed += await what.change(call.services.runtime, fitting[start : start + BATCH])
    if not body.dry_run:
        call.services.stats.forget_failures()
        call.note(after={"matched": len(fitting), "changed": changed, "more": more})
    return {
        "action": body.action,
        "dry_run": body.dry_run,
        "matched": len(fitting),
        "more": more,
        "changed": changed,
        "job": None,
        "tracker": None,
    }


async def _fitting(call: ApiCall, ids: list[UUID], what: BulkAction) -> list[UUID]:
    """Those that it is for and that the principal may see. Read without inputs and outputs, which may be large."""
    found: list[UUID] = []
    for start in range(0, len(ids), BATCH):
        rows = await call.services.read(live.find_shown(ids[start : start + BATCH], 0))
        found += [row.job.id for row in rows if _fits(call, row.job, what)]
    return found


def _fits(call: ApiCall, job: JobRow, what: BulkAction) -> bool:
    """Jobs of built-in kinds are run again one at a time, where what they do is checked first."""
    if what.action in ("retry", "replay") and is_builtin(job.kind):
        return False
    return job.state in (what.filters.states or ()) and call.principal.sees(kind=job.kind, queue=job.queue)


async def _group_ids(call: ApiCall, group_id: str) -> tuple[list[UUID], bool]:
    failed = await call.services.stats.find_failures(GROUP_PERIOD, call.principal)
    found = next((group for group in failed.groups if group.id == group_id), None)
    return ([] if found is None else found.ids), failed.capped


async def _enqueue(call: ApiCall, body: BulkBody, reply: BulkReply, *, expected: int | None) -> None:
    words = body.filter.model_dump(mode="json", exclude_none=True)
    if "enqueued_before" not in words:  # so that a repetition of the job does not reach further than this call
        words["enqueued_before"] = datetime.now(UTC).isoformat()
    given: dict[str, Any] = {"action": body.action, "filter": words, "expected": expected, "by": call.principal.name}
    if body.reason is not None:
        given["reason"] = body.reason
    queue = _served_queue(await call.services.stats.counts.get())
    made = call_unchecked(BULK, given, queue=queue, priority="critical", max_attempts=ATTEMPTS)
    made = made.sent_by(call.principal.name)
    handle = await send_call(call.services.runtime, call_options(BULK, "bulk"), made)
    call.note(after={"matched": reply["matched"], "job": str(handle.id)})
    job = await call.services.client.find(handle.id)
    reply["job"] = None if job is None else shown(call, job)
    if not call.principal.sees(kind=BULK, queue=queue):
        reply["tracker"] = (await call.services.trackers.sign(handle.id, TRACKED_FOR, may_cancel=True)).token


def _served_queue(counts: FleetCounts) -> str:
    """`default` if a worker serves it, else the queue that most workers serve."""
    paused = {queue.name for queue in counts.queues if queue.paused}
    workers = [worker for worker in counts.workers if worker.alive and worker.draining_at is None and BULK in worker.kinds]
    serving = Counter(queue for worker in workers for queue in worker.queues if queue not in paused)
    return "default" if not serving or "default" in serving else serving.most_common(1)[0][0]
