"""What followers of `overview` are sent: the fleet at one moment."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tenure.client.overview import LeaderStatus, WorkerStatus
from tenure.web.fleet_stats import FleetCounts


def overview(counts: FleetCounts) -> dict[str, Any]:
    alive = [worker for worker in counts.workers if worker.alive]
    names = {worker.supervisor_id: worker.name for worker in counts.workers}
    today: dict[str, int] = {}
    for row in counts.today:
        today[row.what] = today.get(row.what, 0) + row.jobs
    return {
        "at": counts.at,
        "queues": [asdict(queue) for queue in counts.queues],
        "today": today,
        "workers": len(alive),
        "slots": sum(worker.concurrency for worker in alive),
        "held": sum(worker.held for worker in counts.workers),
        "fleet": [_worker(worker) for worker in counts.workers],
        "leaders": [_leader(one, names.get(one.holder)) for one in counts.leaders],
    }


def _worker(worker: WorkerStatus) -> dict[str, Any]:
    names = (
        "id", "name", "host", "queues", "concurrency", "held", "alive", "version", "started_at", "died_at", "died_how",
        "draining_at", "memory_mb", "app_version",
    )  # fmt: skip
    return {name: getattr(worker, name) for name in names}


def _leader(leader: LeaderStatus, worker: str | None) -> dict[str, Any]:
    last_run = leader.metadata.get("last_run")
    return {"duty": leader.duty, "state": leader.state, "worker": worker, "last_run": last_run}
