"""The statements that look back: at a job's whole life, at rates and latencies, at the health of the database, as values."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tenure.store.query import Query


def find(job_id: str, *, incidents: int, lines: int, children: int) -> Query:
    return Query("reports/find_report", {"id": job_id, "incidents": incidents, "lines": lines, "children": children})


def minutes(seconds: float, queue: str | None, kind: str | None) -> Query:
    """Gives (minute, queue, kind, what, jobs)."""
    return Query("reports/count_minutes", {"seconds": seconds, "queue": queue, "kind": kind})


def latencies(seconds: float, queue: str | None, kind: str | None) -> Query:
    """Gives (queue, kind, measure, bucket, jobs)."""
    return Query("reports/count_latencies", {"seconds": seconds, "queue": queue, "kind": kind})


def probe() -> Query:
    """Gives the fields of `Probe`."""
    return Query("reports/probe_health")


def declare_retentions(kinds: Mapping[str, float | None]) -> Query:
    """In seconds; None for as long as all others."""
    given = json.dumps([{"kind": kind, "keep": keep} for kind, keep in kinds.items()])
    return Query("history/declare_retentions", {"kinds": given})
