"""Probes, metrics, and the description of the API."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from tenure.model.errors import StoreUnavailable
from tenure.store import reports
from tenure.version import __version__
from tenure.web.api_routes import ApiCall, Reply
from tenure.web.metrics import render
from tenure.web.problems import Problem

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Health(TypedDict):
    status: str


class ServerView(TypedDict):
    tenure: str
    """Its version."""
    postgresql: str
    database: str
    schema: str
    time: str


async def get_server(call: ApiCall) -> ServerView:
    """Show the versions of this server and of its database."""
    [row] = await call.services.read(reports.identify_server())
    schema = call.services.runtime.database().schema
    found = {"postgresql": row.version, "database": row.database, "time": row.at.isoformat()}
    return {"tenure": __version__, "schema": schema, **found}  # type: ignore[typeddict-item]


async def healthz(call: ApiCall) -> Health:  # noqa: ARG001
    """Answer, if the process is alive. Does not ask the database."""
    return {"status": "ok"}


async def readyz(call: ApiCall) -> Health:
    """Answer 200 if PostgreSQL answers, else 503."""
    try:
        await call.services.check_reachable()
    except StoreUnavailable:
        raise Problem(
            503, "database-unavailable", "PostgreSQL does not answer: try again later", headers={"Retry-After": "1"}
        ) from None
    return {"status": "ok"}


async def get_metrics(call: ApiCall) -> str | Reply:
    """Show metrics in the text format of Prometheus."""
    stats = call.services.stats
    return Reply(render(await stats.counts.get(), await stats.rare.get()), media_type=METRICS_TYPE)


async def get_openapi(call: ApiCall) -> dict[str, Any]:  # noqa: ARG001
    """Describe this API as OpenAPI 3.1."""
    from tenure.web.openapi import document  # noqa: PLC0415 - imports the table of routes

    return document()
