"""What needs attention, worst first: from the fleet's state, failed jobs, and the findings of the doctor. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import quote

from tenure.client.overview import LeaderStatus, WorkerStatus
from tenure.model.findings import counted, span
from tenure.web.failure_groups import FailureGroup
from tenure.web.fleet_stats import FleetCounts, QueueCounts

Tone = Literal["bad", "warn"]

OLD = 60.0
"""Seconds: a job that waits longer makes its queue late."""

VERY_OLD = 600.0
MANY_FAILURES = 20
MOST_GROUPS = 5
LOST_FOR = timedelta(hours=1)
"""How long a worker that disappeared is reported."""

SHOWN_ELSEWHERE = frozenset({"paused_queue", "dead_letters"})
"""Findings of the doctor that are made here too, with more detail."""

EFFECTS = {
    "stager": "jobs with a delay and retries do not become pending",
    "reaper": "jobs of lost workers are not requeued",
    "cron": "schedules do not run",
    "resolver": "blocked jobs and waiting workflows do not continue",
    "cleaner": "finished jobs are not removed",
    "rollup": "figures and charts fall behind",
    "doctor": "problems of the database are not noticed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionItem:
    """One thing that a person should look at."""

    tone: Tone
    code: str
    title: str
    text: str
    since: datetime | None = None
    links: dict[str, str] = field(default_factory=dict)
    """Label and route of the dashboard."""


def findings(counts: FleetCounts, failures: Sequence[FailureGroup]) -> list[AttentionItem]:
    found = [
        *_workers(counts),
        *(one for leader in counts.leaders for one in _leader(leader, counts.at)),
        *(one for group in failures[:MOST_GROUPS] for one in _group(group, counts.at)),
        *(one for queue in counts.queues for one in _queue(queue, counts.workers)),
        *_doctor(counts.leaders),
    ]
    return sorted(found, key=lambda one: one.tone != "bad")


def _workers(counts: FleetCounts) -> Iterator[AttentionItem]:
    alive = [worker for worker in counts.workers if worker.alive]
    if not alive and any(queue.pending for queue in counts.queues):
        yield AttentionItem(
            tone="bad",
            code="no_workers",
            title="No worker is running",
            text="Jobs wait until one starts: tenure worker --app your_module:app",
            links={"Open workers": "#/workers"},
        )
    for worker in counts.workers:
        stopped = worker.died_at or worker.expires_at
        if not worker.alive and worker.died_how != "stopped" and counts.at - stopped < LOST_FOR:
            held = f"It held {counted(worker.held)}, which will run elsewhere." if worker.held else "Its jobs were requeued."
            how = "Its process crashed." if worker.died_how == "crashed" else "It stopped renewing its lease."
            links = {"Open workers": "#/workers"}
            yield AttentionItem(
                tone="bad",
                code="worker_lost",
                title=f"Worker {worker.name} is lost",
                text=f"{how} {held}",
                since=stopped,
                links=links,
            )


def _leader(leader: LeaderStatus, at: datetime) -> Iterator[AttentionItem]:
    if not leader.is_duty or leader.state == "holds":
        return
    effect = EFFECTS.get(leader.duty, "its work is not done")
    what = "is stuck" if leader.stuck else "has no leader"
    since = leader.heartbeat_at if not leader.stuck else None
    text = f"{effect[0].upper()}{effect[1:]}."
    links = {"Open leaders": "#/leaders"}
    late = at - leader.expires_at > timedelta(seconds=30)
    if leader.stuck or late:
        yield AttentionItem(
            tone="bad", code="duty", title=f"Leader duty {leader.duty} {what}", text=text, since=since, links=links
        )


def _group(group: FailureGroup, at: datetime) -> Iterator[AttentionItem]:
    dead, retry = group.states.get("dead_letter", 0), group.states.get("retry", 0)
    if not dead + retry or (dead == 0 and dead + retry < MANY_FAILURES) or at - group.last > timedelta(hours=24):
        return
    parts = [
        f"{retry:,} will retry" if retry else "",
        f"{dead:,} {'is a dead letter' if dead == 1 else 'are dead letters'}" if dead else "",
    ]
    reason = ": ".join(part for part in (group.error, group.sample) if part)
    yield AttentionItem(
        tone="bad" if group.rise > 0.5 and dead + retry >= MANY_FAILURES else "warn",
        code="failures",
        title=f"{group.kind} fails: {counted(dead + retry)}",
        text=f"{reason[:160]}. {', '.join(part for part in parts if part)}.",
        since=group.first,
        links={"Open the group": f"#/failures?group={group.id}"},
    )


def _queue(queue: QueueCounts, workers: Sequence[WorkerStatus]) -> Iterator[AttentionItem]:
    age = queue.oldest_pending_seconds or 0.0
    jobs = counted(queue.pending, capped="pending" in queue.capped)
    links = {"Open the queue": "#/queues"}
    if queue.paused:
        why = f": {queue.pause_reason}" if queue.pause_reason else ""
        text = f"By {queue.paused_by or 'someone'}{why}. {jobs[0].upper()}{jobs[1:]} pending."
        yield AttentionItem(
            tone="warn", code="paused", title=f"Queue {queue.name} is paused", text=text, since=queue.paused_at, links=links
        )
        return
    if age < OLD or not queue.pending:
        return
    serving = [worker for worker in workers if worker.alive and queue.name in worker.queues]
    slots, busy = sum(worker.concurrency for worker in serving), sum(worker.held for worker in serving)
    who = f"{len(serving)} {'worker serves' if len(serving) == 1 else 'workers serve'} it, {busy} of {slots} slots are busy"
    do = who if serving else "Start a worker with this queue"
    yield AttentionItem(
        tone="bad" if age > VERY_OLD or not serving else "warn",
        code="late",
        title=f"{queue.name} cannot keep up" if serving else f"No worker serves {queue.name}",
        text=f"{jobs[0].upper()}{jobs[1:]} pending, the oldest for {span(age)}. {do}.",
        since=queue.oldest_pending_at,
        links={**links, "Pending jobs": f"#/jobs?state=pending&queue={quote(queue.name)}"},
    )


def _doctor(leaders: Sequence[LeaderStatus]) -> Iterator[AttentionItem]:
    """What the doctor found in its last round."""
    for leader in leaders:
        for one in leader.findings if leader.duty == "doctor" else ():
            if one.code not in SHOWN_ELSEWHERE:
                yield AttentionItem(tone="warn", code=one.code, title=one.text, text=one.way_out[:1].upper() + one.way_out[1:])
