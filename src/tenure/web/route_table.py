"""The table of routes. A new route is one line here; its handler's signature defines what it takes and returns."""

from __future__ import annotations

from tenure.web.api import (
    bulk,
    chains,
    dispatch,
    events,
    failures,
    findings,
    fleet,
    health,
    job_actions,
    jobs,
    kinds,
    limits,
    queues,
    schedules,
    sessions,
    stats,
    workflows,
)
from tenure.web.api_routes import ApiRoute, Audited, Handler
from tenure.web.security.principal import Scope

READ, OPERATE, ADMIN = Scope.READ, Scope.OPERATE, Scope.ADMIN

CONFLICT = {409: "The state of the job or schedule does not allow it."}


def _get(path: str, handler: Handler, scope: Scope | None = READ, **more: object) -> ApiRoute:
    return ApiRoute(method="GET", path=path, handler=handler, scope=scope, **more)  # type: ignore[arg-type]


def _change(method: str, path: str, handler: Handler, scope: Scope, audited: Audited = "around", **more: object) -> ApiRoute:
    return ApiRoute(method=method, path=path, handler=handler, scope=scope, audited=audited, **more)  # type: ignore[arg-type]


REPORT_TYPES = ("application/json", "text/html", "text/plain")
REPORT = {406: "None of the types in the Accept header is available."}

ROUTES: tuple[ApiRoute, ...] = (
    _get("/jobs", jobs.list_jobs, limited=True),
    _change(
        "POST",
        "/jobs/bulk",
        bulk.bulk,
        OPERATE,
        limited=True,
        statuses={202: "A job carries it out.", 409: "Some of the jobs are locked, or PostgreSQL refuses their change."},
    ),
    _change(
        "POST",
        "/jobs/{kind:path}/dispatch",
        dispatch.dispatch_job,
        OPERATE,
        "after",
        limited=True,
        success=202,
        headers=("Idempotency-Key",),
        statuses={200: "A job with the same key exists.", 409: "A job that you may not see has the same key."},
    ),
    _get("/jobs/{id}/report", jobs.get_report, limited=True, media_types=REPORT_TYPES, statuses=REPORT, headers=("Accept",)),
    _get("/jobs/{id}/explain", jobs.explain_job, limited=True),
    _get(
        "/jobs/{id}/events",
        events.stream_events,
        limited=True,
        tracker=True,
        media_types=("text/event-stream",),
        headers=("Last-Event-ID",),
        statuses={204: "Nothing has changed since `Last-Event-ID`, and the job is over."},
    ),
    _change("POST", "/jobs/{id}/cancel", job_actions.cancel_job, OPERATE, limited=True, tracker=True, statuses=CONFLICT),
    _change("POST", "/jobs/{id}/retry", job_actions.retry_job, OPERATE, limited=True, statuses=CONFLICT),
    _change("POST", "/jobs/{id}/replay", job_actions.replay_job, OPERATE, limited=True, statuses=CONFLICT),
    _change("POST", "/jobs/{id}/tracker", job_actions.create_tracker, OPERATE, limited=True, success=201),
    _get("/jobs/{id}", jobs.get_job, limited=True, tracker=True),
    _change("DELETE", "/jobs/{id}", job_actions.delete_job, ADMIN, limited=True, statuses=CONFLICT),
    _get("/chains", chains.list_chains, limited=True),
    _get("/chains/{id}", chains.get_chain, limited=True),
    _change("POST", "/chains/{id}/complete", chains.complete_chain, OPERATE, limited=True, statuses=CONFLICT),
    _change("DELETE", "/chains/{id}", chains.delete_chain, ADMIN, statuses=CONFLICT),
    _get("/workflows", workflows.list_workflows, limited=True),
    _get("/workflows/{id}", workflows.get_workflow, limited=True),
    _change("POST", "/workflows/{id}/signal", workflows.signal_workflow, OPERATE, limited=True, statuses=CONFLICT),
    _change("POST", "/workflows/{id}/cancel", workflows.cancel_workflow, OPERATE, limited=True, statuses=CONFLICT),
    _change("POST", "/workflows/{id}/resume", workflows.resume_workflow, OPERATE, limited=True, statuses=CONFLICT),
    _change("POST", "/workflows/{id}/fork", workflows.fork_workflow, OPERATE, limited=True, success=201, statuses=CONFLICT),
    _change("POST", "/events", workflows.emit_event, OPERATE, success=202),
    _get("/queues", queues.list_queues, limited=True),
    _change("POST", "/queues/{queue:path}/pause", queues.pause_queue, OPERATE, limited=True),
    _change("POST", "/queues/{queue:path}/resume", queues.resume_queue, OPERATE, limited=True),
    _get("/limits", limits.list_limits),
    _change("PUT", "/limits/{name:path}", limits.set_limit, ADMIN),
    _change("DELETE", "/limits/{name:path}", limits.reset_limit, ADMIN),
    _get("/workers", fleet.list_workers),
    _change("POST", "/workers/{id}/drain", fleet.drain_worker, OPERATE),
    _change("POST", "/workers/{id}/resume", fleet.resume_worker, OPERATE),
    _get("/leaders", fleet.list_leaders),
    _get("/schedules", schedules.list_schedules),
    _change("POST", "/schedules", schedules.create_schedule, ADMIN, success=201, statuses=CONFLICT),
    _get("/schedules/{name:path}/ticks", schedules.list_ticks),
    _change("POST", "/schedules/{name:path}/run", schedules.run_schedule, OPERATE, success=202, statuses=CONFLICT),
    _change("POST", "/schedules/{name:path}/pause", schedules.pause_schedule, OPERATE),
    _change("POST", "/schedules/{name:path}/resume", schedules.resume_schedule, OPERATE),
    _get("/schedules/{name:path}", schedules.get_schedule),
    _change("PATCH", "/schedules/{name:path}", schedules.change_schedule, ADMIN, statuses=CONFLICT),
    _change("DELETE", "/schedules/{name:path}", schedules.delete_schedule, ADMIN, success=204, statuses=CONFLICT),
    _get("/failures", failures.list_failures, limited=True),
    _get("/failures/{group}", failures.get_failure, limited=True),
    _get("/findings", findings.list_findings),
    _get("/stats", stats.get_stats),
    _get("/stats/series", stats.get_series, limited=True),
    _get("/stats/groups", stats.get_grouped_series),
    _get("/stats/histogram", stats.get_histogram, limited=True),
    _get("/stats/fleet", stats.get_fleet_history),
    _get("/stats/latencies", stats.get_latencies, limited=True),
    _get("/kinds", kinds.list_kinds, limited=True),
    _get("/kinds/{kind:path}", kinds.get_kind, limited=True),
    _get("/audit", fleet.list_audit, ADMIN),
    _get("/session", sessions.get_session, limited=True),
    ApiRoute(
        method="POST",
        path="/session",
        handler=sessions.start_session,
        scope=None,
        statuses={401: "The token is not valid.", 422: "A value is not valid.", 429: "Too many wrong tokens."},
    ),
    ApiRoute(method="DELETE", path="/session", handler=sessions.end_session, scope=READ, limited=True, success=204),
    _get("/server", health.get_server, limited=True),
    _get("/metrics", health.get_metrics, media_types=("text/plain",)),
    _get("/openapi.json", health.get_openapi, limited=True),
    _get("/healthz", health.healthz, None),
    _get("/readyz", health.readyz, None),
)
