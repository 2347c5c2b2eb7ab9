"""Lists of jobs, and what can be asked about one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from starlette.requests import Request
from typing_extensions import TypedDict

from tenure.client.filters import FIRST_ID, Filters, to_id
from tenure.client.pages import Look, look_finished, look_live, merge
from tenure.client.status import JobStatus
from tenure.model.errors import JobNotFound
from tenure.model.states import State
from tenure.store import live
from tenure.web.api.job_filters import JobsQuery
from tenure.web.api.shown_filters import ShownFilter
from tenure.web.api_routes import ApiCall, Reply
from tenure.web.job_views import LARGEST_SHOWN, JobView, TrackerView, job_view, tracker_view
from tenure.web.problems import Problem, invalid_value
from tenure.web.security.headers import REPORT_POLICY
from tenure.web.visible_reasons import visible_text

CHECKED_AT_ONCE = 100
"""Jobs that are read to see whether they match as they are shown. Hiding the secrets of a large one takes a millisecond."""

MOST_ROUNDS = 5
"""Such reads for one page."""

MOST_PARTS = 50
"""Statements that one list of a limited principal may need, of live and of finished jobs each."""


class JobPage(TypedDict):
    """Jobs, newest first."""

    jobs: list[JobView]
    next: str | None
    """Pass it as `after` for the next page. A short or even empty page can have a next one."""


class ReasonView(TypedDict):
    code: str
    text: str


class ExplanationView(TypedDict):
    job: JobView
    running: bool
    reasons: list[ReasonView]


async def list_jobs(call: ApiCall, query: JobsQuery) -> JobPage:
    """List jobs, newest first, that match all filters.

    A page reads a bounded number of rows, so it may be short, or even empty, and still have a `next`. A `key`, and an `input`
    with a member `value` or with texts or numbers in lists, are compared with what is shown: hidden values do not match, nor do
    inputs that are too large for lists.
    """
    contained = query.contained()
    shown_filter = ShownFilter.of(call.services.redaction, query.key, contained, "query.input")
    filters = query.filters(contained)
    before = None if query.after is None else _cursor(query.after)

    async def read() -> JobPage:
        parts = visible_parts(call, filters)
        if shown_filter.is_needed:
            return await _newest_shown(call, parts, before, query.limit, shown_filter)
        return await newest(call, parts, before, query.limit)

    if not query.max_age or call.principal.limited:
        return await read()
    return await call.services.stats.kept_list("jobs", (query.model_dump_json(),), read, query.max_age)


async def _newest_shown(
    call: ApiCall, parts: Sequence[Filters], before: UUID | None, limit: int, shown_filter: ShownFilter
) -> JobPage:
    """Jobs that match, but not as they are shown, must not change where the page ends: that would tell the same. So it continues
    behind them, for a bounded number of rounds: behind more of them, the page does end."""
    found: list[JobView] = []
    edge = before
    for _ in range(MOST_ROUNDS):
        ids, edge = await _newest_ids(call, parts, edge, CHECKED_AT_ONCE)
        found += filter(shown_filter.matches, await find_visible(call, ids, parts[0].states if parts else None))
        if len(found) > limit:
            return {"jobs": found[:limit], "next": found[limit - 1]["id"]}
        if edge is None:
            break
    return {"jobs": found, "next": None if edge is None else str(edge)}


async def newest(call: ApiCall, parts: Sequence[Filters], before: UUID | None, limit: int) -> JobPage:
    """A page of the jobs that match one of these filters, which differ in kind and queue only."""
    ids, edge = await _newest_ids(call, parts, before, limit)
    views = await find_visible(call, ids, parts[0].states if parts else None)
    return {"jobs": views, "next": None if edge is None else str(edge)}


async def _newest_ids(call: ApiCall, parts: Sequence[Filters], before: UUID | None, limit: int) -> tuple[list[UUID], UUID | None]:
    """And where to continue. None: nothing is left."""
    read, looks = call.services.read, list[Look]()
    for filters in parts:
        looks.append(await look_live(read, filters, before, limit + 1))
        looks.append(await look_finished(read, filters, before, limit + 1))
    return merge(looks, limit, parts[0].span[0] if parts else FIRST_ID)


async def find_visible(call: ApiCall, ids: Sequence[UUID], states: frozenset[State] | None) -> list[JobView]:
    """Those that the principal may see, without those that have changed to another state since their ids were read."""
    return [shown(call, found.job, omitted=found.omitted) for found in await find_unredacted(call, ids, states)]


class FoundJob(NamedTuple):
    job: JobStatus
    omitted: bool
    """It has parts that are too large for lists, and None here."""


async def find_unredacted(call: ApiCall, ids: Sequence[UUID], states: frozenset[State] | None) -> list[FoundJob]:
    """The same, before their secrets are hidden: to look for these in other texts."""
    rows = await call.services.read(live.find_shown(ids, LARGEST_SHOWN)) if ids else []
    found = [FoundJob(JobStatus.from_row(row.job), row.omitted) for row in rows]
    return [
        one
        for one in found
        if call.principal.sees(kind=one.job.kind, queue=one.job.queue) and (states is None or one.job.state in states)
    ]


def visible_parts(call: ApiCall, filters: Filters) -> list[Filters]:
    """Only what the principal may see is looked for: that there is a next page, and how long it takes to find it, would otherwise
    show something of other jobs and their inputs."""
    kinds = _names(filters.kind, call.principal.kinds)
    queues = _names(filters.queue, call.principal.queues)
    if len(kinds) * len(queues) > MOST_PARTS:
        raise Problem(403, "limited", "this token is for many kinds and queues: give `kind` or `queue`")
    return [replace(filters, kind=kind, queue=queue) for kind in kinds for queue in queues]


def _names(wanted: str | None, allowed: frozenset[str] | None) -> list[str | None]:
    if allowed is None:
        return [wanted]
    return [name for name in sorted(allowed) if wanted in (None, name)]


async def get_job(call: ApiCall) -> JobView | TrackerView:
    """Show a job, live or finished. With a tracker token, without input, traceback and worker."""
    job = await visible(call)
    return tracker_view(call.services.redaction.job(job)) if call.principal.job_id is not None else shown(call, job)


async def get_report(call: ApiCall) -> dict[str, Any] | Reply:
    """Report the whole history of a job: attempts, errors, timeline, log lines, children.

    JSON, HTML or plain text, by the Accept header.
    """
    await visible(call)
    report = call.services.redaction.report(await call.services.client.report(call.path["id"]))
    children = [child for child in report.children if call.principal.sees(kind=child.kind, queue=child.queue)]
    report = replace(report, children=children)
    match accepted(call.request, "application/json", "text/html", "text/plain"):
        case "text/html":
            headers = {"Content-Security-Policy": REPORT_POLICY}
            return Reply(report.to_html(), headers=headers, media_type="text/html; charset=utf-8")
        case "text/plain":
            return Reply(report.to_text(full=True), media_type="text/plain; charset=utf-8")
    return report.to_json()


async def explain_job(call: ApiCall) -> ExplanationView:
    """Explain why a job is not running, and what to do about it."""
    await visible(call)
    found = await call.services.client.explain(call.path["id"])
    known = call.services.redaction.secrets_of(found.job)
    reasons: list[ReasonView] = [
        {"code": reason.code, "text": known.hide(visible_text(reason, found.job, call.principal))} for reason in found.reasons
    ]
    return {"job": shown(call, found.job), "running": found.running, "reasons": reasons}


async def visible(call: ApiCall) -> JobStatus:
    """The job in the path. One that the principal may not see does not exist for them."""
    wanted = to_id(call.path["id"])
    job = await call.services.client.find(wanted)
    if job is None or not call.principal.sees(kind=job.kind, queue=job.queue):
        raise JobNotFound(wanted)
    return job


def shown(call: ApiCall, job: JobStatus, *, omitted: bool = False) -> JobView:
    return job_view(call.services.redaction.job(job), omitted=omitted)


def _cursor(after: str) -> UUID:
    try:
        return UUID(after)
    except ValueError:
        raise invalid_value("query.after", "is not a cursor: give the `next` of a page, or leave it out") from None


def accepted(request: Request, *offered: str) -> str:
    """The offered type that the Accept header prefers. Of each type, the range that names it most closely counts."""
    ranges = [part.strip().partition(";") for part in request.headers.get("accept", "*/*").lower().split(",")[:20]]
    weights = {name.strip(): _weight(parameters) for name, _, parameters in ranges}
    nearest = {media: next((name for name in _ranges_of(media) if name in weights), None) for media in offered}
    allowed = [media for media, name in nearest.items() if name is not None and weights[name] > 0]
    for name in sorted(weights, key=lambda name: -weights[name]):
        for media in allowed:
            if nearest[media] == name:
                return media
    message = f"this is available as {', '.join(offered)}: ask for one of them"
    raise Problem(406, "not-acceptable", message, [{"path": "header.Accept", "message": message}])


def _ranges_of(media: str) -> tuple[str, str, str]:
    """That include it, the closest one first."""
    return media, media.partition("/")[0] + "/*", "*/*"


def _weight(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
