"""Workers, leaders and the audit log."""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from tenure.client.overview import LeaderStatus, WorkerStatus
from tenure.model.errors import InvalidJobId
from tenure.model.findings import Finding
from tenure.store import audit
from tenure.store.audit import AuditRow
from tenure.web.api_routes import ApiCall, RequestModel
from tenure.web.problems import Problem


class WorkerList(TypedDict):
    workers: list[WorkerStatus]


class Draining(TypedDict):
    workers: list[str]
    """Ids: all processes of the same supervisor."""
    draining: bool


class LeaderView(TypedDict):
    """A duty, or a lease of your own, and its holder."""

    duty: str
    state: str
    """holds, stuck, expired; free for a lease of your own that is not held."""
    holder: str
    worker: str | None
    """The name of a worker of that holder."""
    term: int
    acquired_at: str
    heartbeat_at: str
    expires_at: str
    metadata: dict[str, Any]
    """Of the duty: last_run, items, errors, seconds, and others."""
    findings: list[Finding]
    """Of its last round: what the doctor found, and what the cleaner cannot remove."""


class LeaderList(TypedDict):
    leaders: list[LeaderView]


class AuditQuery(RequestModel):
    limit: int = Field(50, ge=1, le=200)
    before: int | None = Field(None, ge=0, le=audit.NEWEST, description="The `next` of the previous page.")
    max_age: float = Field(0, ge=0, le=60, description="Seconds. A page that others were given may be this old.")


class AuditView(TypedDict):
    id: int
    at: str
    request_id: str
    phase: str
    """requested: before it was carried out. finished: with the status of the answer."""
    actor: str
    ip: str | None
    source: str
    """dashboard, api, tracker: a token of one job, or cli: a token was created or revoked on the command line."""
    action: str
    subject: str | None
    request: Any
    before: Any
    after: Any
    status: int | None


class AuditPage(TypedDict):
    entries: list[AuditView]
    next: int | None


async def list_workers(call: ApiCall) -> WorkerList:
    """List the processes that run jobs."""
    return {"workers": (await call.services.stats.counts.get()).workers}


async def drain_worker(call: ApiCall) -> Draining:
    """Let a worker claim no more jobs. Those it runs continue.

    All processes of its supervisor drain together, also those that are started later. They stay until they are stopped: then
    `held` of each is 0.
    """
    return await _drain(call, draining=True)


async def resume_worker(call: ApiCall) -> Draining:
    """Let a worker that drains, and the other processes of its supervisor, claim jobs again."""
    return await _drain(call, draining=False)


async def _drain(call: ApiCall, *, draining: bool) -> Draining:
    client = call.services.client
    try:
        found = await (client.drain_workers if draining else client.resume_workers)(call.path["id"])
    except InvalidJobId:
        found = []
    call.services.stats.counts.forget()
    if not found:
        raise Problem(404, "not-found", "no living worker has this id: GET /_api/workers lists them")
    call.note(after={"draining": draining, "workers": [str(worker_id) for worker_id in found]})
    return {"workers": [str(worker_id) for worker_id in found], "draining": draining}


async def list_leaders(call: ApiCall) -> LeaderList:
    """List the leader's duties: who holds each, since when, and how its rounds went."""
    counts = await call.services.stats.counts.get()
    names = {worker.supervisor_id: worker.name for worker in counts.workers}
    return {"leaders": [_leader(one, names.get(one.holder)) for one in counts.leaders]}


async def list_audit(call: ApiCall, query: AuditQuery) -> AuditPage:
    """List the audit log, newest first: every call that changes something, with who asked for it."""
    before = audit.NEWEST if query.before is None else query.before

    async def read() -> list[AuditRow]:
        return await call.services.read(audit.list_all(before=before, limit=query.limit + 1))

    if query.max_age:
        rows = await call.services.stats.kept_list("audit", (before, query.limit, query.max_age), read, query.max_age)
    else:
        rows = await read()
    shown = rows[: query.limit]
    return {"entries": [_entry(row) for row in shown], "next": shown[-1].id if len(rows) > query.limit else None}


def _leader(one: LeaderStatus, worker: str | None) -> LeaderView:
    return {
        "duty": one.duty,
        "state": one.state,
        "holder": str(one.holder),
        "worker": worker,
        "term": one.term,
        "acquired_at": one.acquired_at.isoformat(),
        "heartbeat_at": one.heartbeat_at.isoformat(),
        "expires_at": one.expires_at.isoformat(),
        "metadata": one.metadata,
        "findings": one.findings,
    }


def _entry(row: AuditRow) -> AuditView:
    return {
        "id": row.id,
        "at": row.at.isoformat(),
        "request_id": str(row.request_id),
        "phase": row.phase,
        "actor": row.actor,
        "ip": row.ip,
        "source": row.source,
        "action": row.action,
        "subject": row.subject,
        "request": _read(row.request),
        "before": _read(row.before),
        "after": _read(row.after),
        "status": row.status,
    }


def _read(text: str | None) -> Any:
    return None if text is None else json.loads(text)
