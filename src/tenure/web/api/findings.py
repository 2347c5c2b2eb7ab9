"""What needs attention."""

from __future__ import annotations

from typing_extensions import TypedDict

from tenure.web.api_routes import ApiCall
from tenure.web.attention import findings

PERIOD = 86400.0  # seconds of failures that are looked at


class FindingView(TypedDict):
    tone: str
    """bad: work is lost, late or not done. warn: it may become so."""
    code: str
    title: str
    text: str
    since: str | None
    links: dict[str, str]
    """Routes of the dashboard, by their labels."""


class FindingList(TypedDict):
    at: str
    findings: list[FindingView]
    checked_at: str | None
    """When the doctor last looked at the database."""


async def list_findings(call: ApiCall) -> FindingList:
    """List what needs attention, worst first: lost workers, stuck duties, failing kinds, late queues, findings of the doctor."""
    counts = await call.services.stats.counts.get()
    groups = (await call.services.stats.failures(PERIOD)).groups
    checked = next((one.metadata.get("last_run") for one in counts.leaders if one.duty == "doctor"), None)
    views: list[FindingView] = [
        {
            "tone": one.tone,
            "code": one.code,
            "title": one.title,
            "text": one.text,
            "since": None if one.since is None else one.since.isoformat(),
            "links": one.links,
        }
        for one in findings(counts, groups)
    ]
    return {"at": counts.at.isoformat(), "findings": views, "checked_at": checked}
