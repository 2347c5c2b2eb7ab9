"""Metrics in the text format of Prometheus, from the counts that all viewers share.

Counters start at 0 at 00:00 UTC, in every process alike: Prometheus takes that for a restart, so `rate()` and `increase()` are
right over any time. A sum over all counters that are kept would shrink when old ones are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from tenure.client.overview import WorkerStatus
from tenure.model.exposition import Sample, histogram_samples, metric
from tenure.store.reports import LatencyRow
from tenure.version import __version__
from tenure.web.fleet_stats import FleetCounts, RareCounts

STATES = ("pending", "running", "scheduled", "retry", "blocked", "waiting", "dead_letter")


def render(counts: FleetCounts, rare: RareCounts) -> str:
    lines: list[str] = []
    for family in (_queues(counts), _today(counts), _workers(counts), _leaders(counts), _rare(rare), _latencies(rare.buckets)):
        lines.extend(family)
    return "\n".join([*metric("tenure_info", "gauge", "The version of the server.", [({"version": __version__}, 1)]), *lines, ""])


def _queues(counts: FleetCounts) -> Iterator[str]:
    queues = counts.queues
    yield from metric(
        "tenure_jobs",
        "gauge",
        "Live jobs by queue and state, counted up to a bound: see tenure_jobs_capped.",
        [({"queue": queue.name, "state": state}, getattr(queue, state)) for queue in queues for state in STATES],
    )
    yield from metric(
        "tenure_jobs_capped",
        "gauge",
        "1 where the queue may have more jobs of this state than tenure_jobs has, because counting stopped; otherwise left out.",
        [({"queue": queue.name, "state": state}, 1) for queue in queues for state in queue.capped],
    )
    yield from metric(
        "tenure_queue_oldest_pending_seconds",
        "gauge",
        "How long the first pending job has waited; 0 if there is none.",
        [({"queue": queue.name}, queue.oldest_pending_seconds or 0) for queue in queues],
    )
    yield from metric(
        "tenure_queue_oldest_running_seconds",
        "gauge",
        "How long the longest of the running jobs has been running; 0 if none runs.",
        [({"queue": queue.name}, queue.oldest_running_seconds or 0) for queue in queues],
    )
    yield from metric(
        "tenure_queue_paused", "gauge", "1 if the queue is paused.", [({"queue": queue.name}, queue.paused) for queue in queues]
    )


def _today(counts: FleetCounts) -> Iterator[str]:
    def samples(*whats: str) -> list[Sample]:
        return [({"queue": row.queue, "kind": row.kind}, row.jobs) for row in counts.today if row.what in whats]

    yield from metric("tenure_jobs_enqueued_total", "counter", "Jobs enqueued since 00:00 UTC.", samples("enqueued"))
    yield from metric("tenure_jobs_started_total", "counter", "Runs started since 00:00 UTC.", samples("started"))
    yield from metric(
        "tenure_jobs_ended_total",
        "counter",
        "Runs and jobs that ended since 00:00 UTC, by outcome; retry and dead_letter are attempts that ended that way.",
        [
            ({"queue": row.queue, "kind": row.kind, "outcome": row.what}, row.jobs)
            for row in counts.today
            if row.what not in ("enqueued", "started")
        ],
    )


def _workers(counts: FleetCounts) -> Iterator[str]:
    alive = [worker for worker in counts.workers if worker.alive]
    yield from metric("workers_total", "gauge", "Worker processes whose lease holds.", [({}, len(alive))])
    yield from metric(
        "tenure_workers", "gauge", "The same by host.", [({"host": host}, number) for host, number in _by_host(alive)]
    )
    yield from metric(
        "tenure_workers_draining",
        "gauge",
        "Those that claim no more jobs.",
        [({}, _sum(w.draining_at is not None for w in alive))],
    )
    yield from metric(
        "tenure_slots", "gauge", "Jobs that the living workers can run at a time.", [({}, _sum(w.concurrency for w in alive))]
    )
    yield from metric("tenure_slots_busy", "gauge", "Jobs that they hold.", [({}, _sum(worker.held for worker in alive))])


def _by_host(workers: Iterable[WorkerStatus]) -> list[tuple[str, int]]:
    found: dict[str, int] = {}
    for worker in workers:
        found[worker.host] = found.get(worker.host, 0) + 1
    return sorted(found.items())


def _leaders(counts: FleetCounts) -> Iterator[str]:
    duties = [leader for leader in counts.leaders if leader.is_duty]
    yield from metric(
        "tenure_leader_held", "gauge", "1 if a process holds the duty.", [({"duty": one.duty}, one.holds) for one in duties]
    )
    yield from metric(
        "tenure_leader_stuck", "gauge", "1 if its next round is overdue.", [({"duty": one.duty}, one.stuck) for one in duties]
    )
    yield from metric(
        "tenure_leader_term", "gauge", "Grows with every holder.", [({"duty": one.duty}, one.term) for one in duties]
    )
    yield from metric(
        "tenure_leader_heartbeat_age_seconds",
        "gauge",
        "Since the last heartbeat of its holder.",
        [({"duty": one.duty}, max(0.0, (counts.at - one.heartbeat_at).total_seconds())) for one in duties],
    )


def _rare(rare: RareCounts) -> Iterator[str]:
    limits, schedules = rare.limits, rare.schedules
    yield from metric(
        "tenure_jobs_held_by_unknown",
        "gauge",
        "Running jobs whose worker does not exist: the reaper requeues them.",
        [({}, rare.held_by_unknown)],
    )
    yield from metric(
        "tenure_workflows_held",
        "gauge",
        "Workflows that wait for a decision, because their code differs from what they have recorded.",
        [({"kind": one.kind}, one.jobs) for one in rare.held_workflows],
    )
    yield from metric(
        "tenure_limit_running", "gauge", "Jobs that run under the limit.", [({"limit": one.name}, one.running) for one in limits]
    )
    yield from metric(
        "tenure_limit_waiting", "gauge", "1 if jobs wait for the limit.", [({"limit": one.name}, one.waiting) for one in limits]
    )
    yield from metric(
        "tenure_limit_concurrency",
        "gauge",
        "Jobs that may run at a time.",
        [({"limit": one.name}, one.rules["concurrency"]) for one in limits if "concurrency" in one.rules],
    )
    yield from metric(
        "tenure_schedule_paused", "gauge", "1 if it is paused.", [({"schedule": one.name}, one.paused) for one in schedules]
    )
    yield from metric(
        "tenure_schedule_next_timestamp_seconds",
        "gauge",
        "Its next planned time.",
        [({"schedule": one.name}, _stamp(one.next_at)) for one in schedules if one.next_at is not None],
    )
    yield from metric(
        "tenure_schedule_last_timestamp_seconds",
        "gauge",
        "Its last planned time that has an outcome.",
        [({"schedule": one.name}, _stamp(one.last_at)) for one in schedules if one.last_at is not None],
    )


def _latencies(rows: list[LatencyRow]) -> Iterator[str]:
    for measure, name, text in (
        ("waited", "tenure_job_wait_seconds", "From enqueue to the start of the last run, of jobs that ended since 00:00 UTC."),
        ("ran", "tenure_job_run_seconds", "From that start to the end."),
    ):
        groups: dict[tuple[str, str], dict[int, int]] = {}
        for row in rows:
            if row.measure == measure:
                groups.setdefault((row.queue, row.kind), {})[row.bucket] = row.jobs
        yield from _histogram(name, text, groups)


def _histogram(name: str, text: str, groups: Mapping[tuple[str, str], Mapping[int, int]]) -> Iterator[str]:
    """The sum is made of the upper bounds of the buckets: right to within a third."""
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} histogram"
    for (queue, kind), counts in groups.items():
        buckets = [(2 ** (bucket / 2) / 1000, counts[bucket]) for bucket in sorted(counts)]
        total = sum(bound * count for bound, count in buckets)
        yield from histogram_samples(name, {"queue": queue, "kind": kind}, buckets, total)


def _sum(numbers: Iterable[int]) -> int:
    return sum(numbers)


def _stamp(moment: datetime) -> float:
    return moment.timestamp()
