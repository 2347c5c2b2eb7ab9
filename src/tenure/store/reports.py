"""The statement about a job's whole life, as a value."""

from __future__ import annotations

from tenure.store.query import Query


def find(job_id: str, *, incidents: int, lines: int, children: int) -> Query:
    return Query("reports/find_report", {"id": job_id, "incidents": incidents, "lines": lines, "children": children})
