"""The rows of the report: what each figure is called, what it is compared with, and what it is meant to reach."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.figures import Figures
from benchmarks.listing import FILTERS
from benchmarks.web_reads import PATHS


@dataclass(frozen=True)
class Target:
    at_least: float | None = None
    at_most: float | None = None
    of_ratio: bool = False

    def reached(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True)
class Row:
    key: str
    letter: str
    title: str
    unit: str
    of: str | None = None
    """The figure that this one is a ratio of."""
    of_title: str = ""
    targets: tuple[Target, ...] = ()

    def reached(self, figures: Figures) -> bool | None:
        """In every round: the worst one decides. None where nothing is aimed at."""
        if not self.targets:
            return None
        return all(target.reached(value) for target in self.targets for value in self._rounds(figures, target))

    def worst(self, figures: Figures) -> float:
        """The figure of the worst round."""
        return self._worse(figures.rounds(self.key))

    def worst_ratio(self, figures: Figures) -> float:
        assert self.of is not None
        return self._worse(figures.ratios(self.key, self.of))

    def _rounds(self, figures: Figures, target: Target) -> list[float]:
        if target.of_ratio:
            assert self.of is not None
            return figures.ratios(self.key, self.of)
        return figures.rounds(self.key)

    def _worse(self, values: list[float]) -> float:
        return max(values) if self._less_is_better else min(values)

    @property
    def _less_is_better(self) -> bool:
        if self.targets:
            return self.targets[0].at_most is not None
        return self.unit in COSTS


def _share(least: float) -> Target:
    return Target(at_least=least, of_ratio=True)


def _at_most(share: float) -> Target:
    return Target(at_most=share, of_ratio=True)


def _steady(rate: int) -> tuple[Row, ...]:
    key = f"steady_{rate}"
    return (
        Row(f"{key}_p50", "r", f"enqueue to start, {rate}/s, p50", MS, targets=(Target(at_most=5),)),
        Row(f"{key}_p99", "r", f"enqueue to start, {rate}/s, p99", MS, targets=(Target(at_most=20),)),
        Row(f"{key}_transactions", "r", "  transactions per job, besides enqueue", "", targets=(Target(at_most=0.2),)),
    )


RATE, MS = "jobs/s", "ms"
COSTS = (MS, "µs", "bytes", "MB", "statements/s", "% of a core", "")
"""Units of which less is better, where a row has no target."""

STEADY_RATES = (100, 600)
ONE = ("drain_1", "(c) one child")

ROWS = (
    Row("ceiling", "a", "ceiling: bare claim and settle", RATE),
    Row("single", "b", "enqueue, one by one", RATE, "single_bare", "bare insert", (_share(0.85),)),
    Row("single_sync", "b", "enqueue_sync, one by one", RATE, "single_sync_bare", "bare insert", (_share(0.75),)),
    Row("borrowed", "b", "enqueue with conn=, in a transaction", RATE, "borrowed_bare", "bare insert", (_share(0.6),)),
    Row("concurrent", "b", "enqueue, 200 tasks at once", RATE, targets=(Target(at_least=10_000),)),
    Row("bulk", "b", "enqueue_many, making the calls", RATE, targets=(Target(at_least=60_000),)),
    Row("bulk_prepared", "b", "enqueue_many, calls made before", RATE),
    Row("drain_1", "c", "drain, one child", RATE, "ceiling", "(a)", (Target(at_least=20_000), _share(0.40))),
    Row("drain_1_wall", "c", "  by the wall clock", RATE, "ceiling", "(a)"),
    Row("drain_2", "c", "drain, two children", RATE, *ONE, (_share(1.8),)),
    Row("drain_1_wall", "p", "drain, one child, by the wall clock", RATE, "bare_drain_1", "bare loop", (_share(0.65),)),
    Row("drain_2_wall", "p", "drain, two children, by the wall clock", RATE, "bare_drain_2", "bare loop"),
    Row("wal", "p", "WAL per job, one child", "bytes", "bare_wal", "bare loop"),
    Row("server_cpu", "p", "CPU per job, PostgreSQL, one child", "µs", "bare_server_cpu", "bare loop"),
    Row("default", "q", "drain at default settings", RATE, *ONE, (_share(0.5),)),
    Row("threads", "q", "  by handlers in threads", RATE, "default", "on the loop"),
    Row("processes", "q", "  by handlers in processes", RATE, "default", "on the loop"),
    Row("waiting_16", "z", "drain of jobs that wait for 1 ms, 16 slots", RATE),
    Row("waiting_64", "z", "  64 slots", RATE),
    Row("waiting_256", "z", "  256 slots", RATE, targets=(Target(at_least=12_000),)),
    Row("wakeup_p50", "d", "wake-up of an idle worker, p50", MS, "bare_p50", "bare loop", (Target(at_most=4), _at_most(1.5))),
    Row("wakeup_p99", "d", "wake-up of an idle worker, p99", MS, "bare_p99", "bare loop", (Target(at_most=15),)),
    *(row for rate in STEADY_RATES for row in _steady(rate)),
    Row("snapshot", "e", "drain, snapshot held", RATE, *ONE, (_share(0.85),)),
    Row("snapshot_fresh", "e", "  by a worker started then", RATE, *ONE),
    Row("scheduled", "f", "drain, scheduled jobs", RATE, *ONE, (_share(0.85),)),
    Row("finished", "f", "drain, finished jobs", RATE, *ONE, (_share(0.85),)),
    Row("unknown", "f", "drain, jobs of unknown kinds", RATE, *ONE, (_share(0.85),)),
    Row("beside_limits", "m", "drain, the app has limited kinds too", RATE, *ONE, (_share(0.95),)),
    Row("limited", "m", "drain of a limited kind", RATE, *ONE, (_share(0.8),)),
    Row("fair", "m", "drain of a kind with 50 keys in turns", RATE, *ONE, (_share(0.6),)),
    Row("with_flow", "y", "drain of jobs without dependants", RATE, "without_flow", "without flow", (_share(0.98),)),
    Row("with_flow_cpu", "y", "  CPU per job, PostgreSQL", "µs", "without_flow_cpu", "without flow"),
    Row("with_flow_worker_cpu", "y", "  CPU per job, worker", "µs", "without_flow_worker_cpu", "without flow"),
    Row("statements", "g", "statements = commits per job", "", targets=(Target(at_most=0.05),)),
    Row("wal", "g", "WAL per job", "bytes", targets=(Target(at_most=660),)),
    Row("worker_cpu", "g", "CPU per job, worker", "µs"),
    Row("server_cpu", "g", "CPU per job, PostgreSQL", "µs"),
    Row("idle", "h", "idle worker", "statements/s", targets=(Target(at_most=2),)),
    Row("memory", "s", "RSS of an idle supervisor and a child", "MB", targets=(Target(at_most=90),)),
    Row("import", "s", "import beyond psycopg", MS, targets=(Target(at_most=60),)),
    Row("typed", "i", "drain, models and a middleware", RATE, *ONE, (_share(0.7),)),
    Row("typed_cpu", "i", "  CPU per job, worker", "µs", "worker_cpu", "(g)"),
    Row("progress", "j", "progress of 20 jobs in tight loops", "statements/s", targets=(Target(at_most=5),)),
    Row("progress_calls", "j", "  calls meanwhile", "calls/s"),
    Row("due_p50", "n", "delayed job, how late, p50", MS),
    Row("due_p99", "n", "delayed job, how late, p99", MS, targets=(Target(at_most=150),)),
    Row("due_flood", "n", "many due at once, promoted and run", RATE),
    Row("due_urgent", "n", "  a job enqueued meanwhile, p99", MS),
    Row("idle_workers", "o", "50 idle workers, besides the next two", "statements/s", targets=(Target(at_most=5),)),
    Row("idle_workers_renewals", "o", "  their renewals", "statements/s"),
    Row("idle_workers_polls", "o", "  their polls", "statements/s"),
    Row("result_p50", "k", "job's end to result(), p50", MS, targets=(Target(at_most=10),)),
    Row("result_p99", "k", "job's end to result(), p99", MS),
    Row("steps_alone", "w", "steps of one workflow, one by one", "steps/s", targets=(Target(at_least=1_000),)),
    Row("steps_alone_statements", "w", "  statements per step", "", targets=(Target(at_most=1.1),)),
    Row("steps_together", "w", "steps of 100 workflows at once", "steps/s"),
    Row("steps_together_statements", "w", "  statements per step", "", targets=(Target(at_most=0.1),)),
    Row("workflow_starts", "w", "workflows of one step", "workflows/s"),
    Row("workflow_starts_statements", "w", "  statements per workflow", ""),
    Row("links", "x", "links of 50 chains at once", "links/s", targets=(Target(at_least=3_000),)),
    Row("sleepers_p50", "x", "sleeping workflows, how late, p50", MS),
    Row("sleepers_p99", "x", "sleeping workflows, how late, p99", MS, targets=(Target(at_most=3_000),)),
    Row("fan_in", "x", "a job behind many, after the last of them", MS, targets=(Target(at_most=2_000),)),
    Row("list", "l", "list a page, the slowest filter", MS, targets=(Target(at_most=50),)),
    *(Row(f"list {name}", "l", f"  by {name}", MS) for name in FILTERS),
    Row(
        "web_dispatch", "t", "dispatch over HTTP", "requests/s", "web_dispatch_bare", "bare insert",
        (Target(at_least=1500), _share(0.7)),
    ),
    Row("web_dispatch_cpu", "t", "  CPU per request", "µs"),
    Row("web_live_p95", "u", "progress to a thousand sockets, p95", MS, targets=(Target(at_most=250),)),
    Row("web_live_cpu", "u", "  CPU of the server, 100 updates/s", "% of a core", targets=(Target(at_most=100),)),
    Row("web_progress_p95", "u", "ctx.progress of a worker to its socket, p95", MS, targets=(Target(at_most=250),)),
    Row("web_reads", "v", "GET among millions of jobs, the slowest", MS, targets=(Target(at_most=100),)),
    Row("web /metrics", "v", "  /metrics", MS, targets=(Target(at_most=20),)),
    *(Row(f"web {path}", "v", f"  {path}", MS) for path in PATHS if path != "/metrics"),
)  # fmt: skip
