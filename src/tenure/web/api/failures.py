"""Failed jobs, grouped by their cause."""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from tenure.client.status import JobStatus
from tenure.model.durations import to_seconds
from tenure.model.options import check_option
from tenure.store import live
from tenure.web.api.jobs import shown
from tenure.web.api_routes import ApiCall, RequestModel
from tenure.web.failure_groups import FailureGroup, shared_values
from tenure.web.job_views import LARGEST_SHOWN, JobView
from tenure.web.problems import Problem, invalid_value

LONGEST = 30 * 86400.0  # seconds
COMPARED = 100  # jobs of a group whose inputs are compared


class FailuresQuery(RequestModel):
    last: str = Field("24h", description='"1h", "24h", "7d"; at most 30 days.')

    @property
    def seconds(self) -> float:
        seconds = check_option("last", partial(to_seconds, what="last"), self.last)
        if not 60 <= seconds <= LONGEST:
            raise invalid_value("query.last", f"is {self.last!r}: give a duration from 1m to 30d")
        return seconds


class FailureGroupView(TypedDict):
    id: str
    kind: str
    error: str | None
    """The type of the exception. None: the handler returned `Fail`, or the job was quarantined."""
    message: str
    """Without numbers and ids."""
    sample: str
    """The message of the newest job."""
    queues: list[str]
    jobs: int
    states: dict[str, int]
    """Of these jobs: retry, dead_letter, failed."""
    first: str
    last: str
    trend: list[int]
    """Jobs in each 48th of the period."""
    rising: bool


class FailureList(TypedDict):
    seconds: float
    groups: list[FailureGroupView]
    capped: bool
    """There are more failed jobs than were looked at: at most 5,000 of each state."""


class SharedView(TypedDict):
    field: str
    value: Any
    jobs: int


class FailureDetail(TypedDict):
    group: FailureGroupView
    newest: list[JobView]
    compared: int
    """How many of the newest jobs were compared."""
    shared: list[SharedView]
    """Values of the input that most of them have in common."""


async def list_failures(call: ApiCall, query: FailuresQuery) -> FailureList:
    """List jobs whose last attempt failed, grouped by kind, error, and message without numbers and ids; rising groups first.

    Jobs that wait for a retry, dead letters, and jobs that failed for good: the newest 5,000 of each.
    """
    found = await call.services.stats.failures(query.seconds, call.principal)
    groups = [_view(group) for group in found.groups]
    return {"seconds": query.seconds, "groups": groups, "capped": found.capped}


async def get_failure(call: ApiCall, query: FailuresQuery) -> FailureDetail:
    """Show a group of failed jobs: its newest ones, and what the inputs of its jobs have in common."""
    found_groups = (await call.services.stats.failures(query.seconds, call.principal)).groups
    group = next((one for one in found_groups if one.id == call.path["group"]), None)
    if group is None:
        raise Problem(404, "unknown-group", "no job failed in this way in this period: give a longer `last`")
    ids = group.ids[:COMPARED]
    rows = await call.services.read(live.find_shown(ids, LARGEST_SHOWN))
    by_id = {row.job.id: row for row in rows}
    found = [by_id[job_id] for job_id in ids if job_id in by_id]
    views = [shown(call, JobStatus.from_row(row.job), omitted=row.omitted) for row in found]
    common = shared_values([view["input"] for view in views])
    return {
        "group": _view(group),
        "newest": views[:5],
        "compared": len(views),
        "shared": [{"field": one.field, "value": one.value, "jobs": one.jobs} for one in common],
    }


def _view(group: FailureGroup) -> FailureGroupView:
    return {
        "id": group.id,
        "kind": group.kind,
        "error": group.error,
        "message": group.message,
        "sample": group.sample,
        "queues": group.queues,
        "jobs": group.jobs,
        "states": group.states,
        "first": group.first.isoformat(),
        "last": group.last.isoformat(),
        "trend": group.trend,
        "rising": group.rise > 0.5 and group.jobs >= 3,
    }
