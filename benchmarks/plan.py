"""What is measured in which order. The ceiling and the drains of a round follow each other, so that noise meets all of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from benchmarks import (
    bare_drain,
    burdens,
    ceiling,
    drain,
    due,
    enqueue,
    executors,
    fleet,
    flows,
    footprint,
    idle,
    job_progress,
    limited,
    listing,
    results,
    steady,
    stock,
    typed,
    waiting_jobs,
    wakeup,
    web,
    web_reads,
    without_flow,
    workflows,
)
from benchmarks.figures import Figures
from benchmarks.noise import Noise, StepNoise
from benchmarks.progress import Steps
from benchmarks.rows import STEADY_RATES
from benchmarks.server import Server
from benchmarks.sizes import Sizes

NEEDS = {"c": "a", "e": "ac", "f": "ac", "g": "ac", "i": "ac", "m": "ac", "p": "ac", "q": "ac"}
BURDENS = {
    "scheduled": ("scheduled jobs", burdens.SCHEDULED),
    "finished": ("finished jobs", burdens.FINISHED),
    "unknown": ("jobs of unknown kinds", burdens.UNKNOWN),
}

Step = tuple[str, Callable[[], None]]


def with_needs(letters: Iterable[str]) -> set[str]:
    """What a ratio is taken of must be measured too."""
    wanted = set(letters)
    return wanted.union(*(NEEDS.get(letter, "") for letter in wanted))


@dataclass
class Bench:
    server: Server
    sizes: Sizes
    letters: set[str]
    figures: Figures = field(default_factory=Figures)
    noise: list[StepNoise] = field(default_factory=list)
    _laden: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        with ExitStack() as kept:
            steps = list(self._steps(kept))
            with Steps(len(steps)).shown() as progress:
                for name, step in steps:
                    progress.begin(name)
                    noise = Noise(self.server)
                    step()
                    self.noise.append(noise.of_step(name))

    def _steps(self, kept: ExitStack) -> Iterator[Step]:
        if "f" in self.letters:
            for key, (title, statement) in BURDENS.items():
                yield f"(f) making {self._count(key):,} {title}", self._maker(kept, key, statement)
        if "l" in self.letters:
            yield f"(l) making {self.sizes.finished:,} finished jobs of many sorts", self._stock_maker(kept)
        if "v" in self.letters:
            yield f"(v) making {self.sizes.finished:,} finished and {self.sizes.pending:,} pending jobs", self._reads_maker(kept)
        for number in range(1, self.sizes.rounds + 1):
            for name, step in self._round():
                yield f"round {number}: {name}", step
        yield from self._once()

    def _once(self) -> Iterator[Step]:
        steps: list[tuple[str, str, Callable[[], None]]] = [
            ("s", "memory and import", self._footprint),
            ("h", "an idle worker", self._idle),
            ("j", "progress", self._progress),
            ("n", "delayed jobs", self._due),
            ("x", "sleeping workflows", self._sleepers),
            ("o", "fifty idle workers", self._idle_workers),
            ("u", "web: live sockets", self._web_live),
            ("v", "web: every GET", self._web_reads),
        ]
        return self._chosen(steps)

    def _round(self) -> Iterator[Step]:
        steps: list[tuple[str, str, Callable[[], None]]] = [
            ("a", "ceiling", self._ceiling),
            ("c", "drain, one child", self._drain_1),
            ("p", "drain, bare loop", self._bare_drain),
            ("m", "drain, beside limited kinds", self._limited),
            ("y", "drain, with and without chains and workflows", self._without_flow),
            ("i", "drain, models and a middleware", self._typed),
            ("c", "drain, two children", self._drain_2),
            ("e", "drain, snapshot held", self._snapshot),
            *(("f", f"drain, {title}", self._burden(key)) for key, (title, _) in BURDENS.items()),
            ("q", "drain at default settings", self._executors),
            ("z", "drain of jobs that wait", self._waiting_jobs),
            ("b", "enqueue", self._enqueue),
            ("d", "wake-up", self._wakeup),
            *(("r", f"steady {rate}/s", partial(self._steady, rate)) for rate in STEADY_RATES),
            ("k", "result()", self._result),
            ("w", "workflows", self._workflows),
            ("x", "chains, and a job behind many", self._flows),
            ("l", "lists", self._list),
            ("t", "web: dispatch", self._web_dispatch),
        ]
        return self._chosen(steps)

    def _chosen(self, steps: Iterable[tuple[str, str, Callable[[], None]]]) -> Iterator[Step]:
        for letter, name, step in steps:
            if letter in self.letters:
                yield f"({letter}) {name}", step

    def _ceiling(self) -> None:
        self.figures.add("ceiling", ceiling.measure(self.server, self.sizes.jobs, self.sizes.batch))

    def _drain_1(self) -> None:
        drained, statements = self._alone(children=1)
        jobs = drained.jobs
        self.figures.add("drain_1", drained.rate)
        self.figures.add("drain_1_wall", jobs / drained.wall)
        self.figures.add("statements", statements / jobs)
        self.figures.add("wal", drained.wal / jobs)
        self.figures.add("worker_cpu", drained.worker_cpu / jobs * 1e6)
        if drained.server_cpu is not None:
            self.figures.add("server_cpu", drained.server_cpu / jobs * 1e6)

    def _drain_2(self) -> None:
        drained, _ = self._alone(children=2)
        self.figures.add("drain_2", drained.rate)
        self.figures.add("drain_2_wall", drained.jobs / drained.wall)

    def _bare_drain(self) -> None:
        one, two = (bare_drain.measure(self.server, self.sizes.jobs, processes) for processes in (1, 2))
        self.figures.add("bare_drain_1", one.rate)
        self.figures.add("bare_drain_2", two.rate)
        self.figures.add("bare_wal", one.wal)
        if one.server_cpu is not None:
            self.figures.add("bare_server_cpu", one.server_cpu)

    def _executors(self) -> None:
        for key, drained in executors.measure(self.server, self.sizes.jobs).items():
            self.figures.add(key, drained.rate)

    def _waiting_jobs(self) -> None:
        for slots, drained in waiting_jobs.measure(self.server, self.sizes.jobs // 2).items():
            self.figures.add(f"waiting_{slots}", drained.rate)

    def _steady(self, rate: int) -> None:
        found = steady.measure(self.server, rate, self.sizes.steady)
        self._cut(f"steady_{rate}", found.ages)
        self.figures.add(f"steady_{rate}_transactions", found.transactions)

    def _footprint(self) -> None:
        self.figures.add("memory", footprint.memory(self.server))
        self.figures.add("import", footprint.import_time())

    def _alone(self, children: int) -> tuple[drain.Drain, int]:
        return drain.measure_alone(self.server, self.sizes.jobs, children=children, concurrency=self.sizes.concurrency)

    def _snapshot(self) -> None:
        sizes = self.sizes
        lived, fresh = burdens.behind_snapshot(self.server, sizes.jobs, sizes.gone_through, sizes.concurrency)
        self.figures.add("snapshot", lived.rate)
        self.figures.add("snapshot_fresh", fresh.rate)

    def _maker(self, kept: ExitStack, key: str, statement: str) -> Callable[[], None]:
        def make() -> None:
            self._laden[key] = kept.enter_context(burdens.laden(self.server, statement, self._count(key)))

        return make

    def _burden(self, key: str) -> Callable[[], None]:
        def measure() -> None:
            drained = burdens.beside_burden(self.server, self._laden[key], self.sizes.jobs, self.sizes.concurrency)
            self.figures.add(key, drained.rate)

        return measure

    def _count(self, key: str) -> int:
        return int(getattr(self.sizes, key))

    def _enqueue(self) -> None:
        for key, rate in enqueue.measure(self.server, self.sizes).items():
            self.figures.add(key, rate)

    def _wakeup(self) -> None:
        ours, bare = wakeup.measure(self.server, self.sizes.wakeups)
        self._cut("wakeup", ours)
        self._cut("bare", bare)

    def _result(self) -> None:
        self._cut("result", results.measure(self.server, self.sizes.results))

    def _cut(self, key: str, ages: list[float]) -> None:
        cuts = statistics.quantiles(ages, n=100, method="inclusive")
        self.figures.add(f"{key}_p50", cuts[49])
        self.figures.add(f"{key}_p99", cuts[98])

    def _idle(self) -> None:
        self.figures.add("idle", idle.measure(self.server, self.sizes.idle_warmup, self.sizes.idle))

    def _due(self) -> None:
        found = due.measure(self.server, self.sizes.delayed, self.sizes.flood)
        self.figures.add("due_p50", _cut(found.late, 0.5))
        self.figures.add("due_p99", _cut(found.late, 0.99))
        self.figures.add("due_flood", found.promoted)
        self.figures.add("due_urgent", _cut(found.urgent, 0.99))

    def _idle_workers(self) -> None:
        found = fleet.watch(self.sizes.idle_workers, self.sizes.idle)
        self.figures.add("idle_workers", found.background)
        self.figures.add("idle_workers_renewals", found.renewals)
        self.figures.add("idle_workers_polls", found.polls)

    def _typed(self) -> None:
        drained = typed.measure(self.server, self.sizes.jobs, self.sizes.concurrency)
        self.figures.add("typed", drained.rate)
        self.figures.add("typed_cpu", drained.worker_cpu / drained.jobs * 1e6)

    def _workflows(self) -> None:
        for key, found in workflows.measure(self.server, self.sizes.steps).items():
            self.figures.add(key, found.rate)
            self.figures.add(f"{key}_statements", found.statements)

    def _flows(self) -> None:
        self.figures.add("links", flows.measure_links(self.server, self.sizes.links))
        self.figures.add("fan_in", flows.measure_fan_in(self.server, self.sizes.fan_in))

    def _sleepers(self) -> None:
        self._cut("sleepers", flows.measure_sleepers(self.server, self.sizes.sleepers, self.sizes.sleep_within))

    def _limited(self) -> None:
        for key, drained in limited.measure(self.server, self.sizes.jobs, self.sizes.concurrency).items():
            self.figures.add(key, drained.rate)

    def _without_flow(self) -> None:
        ours, without = without_flow.measure(self.server, self.sizes.jobs, self.sizes.concurrency)
        self.figures.add("with_flow", ours.rate)
        self.figures.add("without_flow", without.rate)
        self.figures.add("with_flow_worker_cpu", ours.worker_cpu)
        self.figures.add("without_flow_worker_cpu", without.worker_cpu)
        if ours.server_cpu is not None and without.server_cpu is not None:
            self.figures.add("with_flow_cpu", ours.server_cpu)
            self.figures.add("without_flow_cpu", without.server_cpu)

    def _progress(self) -> None:
        statements, calls = job_progress.measure(self.server, self.sizes.progress)
        self.figures.add("progress", statements)
        self.figures.add("progress_calls", calls)

    def _stock_maker(self, kept: ExitStack) -> Callable[[], None]:
        def make() -> None:
            self._laden["stock"] = kept.enter_context(stock.laden(self.server, self.sizes.finished))

        return make

    def _reads_maker(self, kept: ExitStack) -> Callable[[], None]:
        def make() -> None:
            made = web_reads.laden(self.server, self.sizes.finished, self.sizes.pending)
            self._laden["reads"] = kept.enter_context(made)

        return make

    def _web_dispatch(self) -> None:
        for key, value in web.measure_dispatch(self.server).items():
            self.figures.add(key, value)

    def _web_live(self) -> None:
        for key, value in web.measure_live(self.server, self.sizes.sockets, self.sizes.live).items():
            self.figures.add(key, value)
        self.figures.add("web_progress_p95", web.measure_progress(self.server, self.sizes.live))

    def _web_reads(self) -> None:
        found = web_reads.measure(self._laden["reads"])
        self.figures.add("web_reads", max(found.values()))
        for path, took in found.items():
            self.figures.add(f"web {path}", took)

    def _list(self) -> None:
        found = listing.measure(self._laden["stock"])
        self.figures.add("list", max(found.values()))
        for name, took in found.items():
            self.figures.add(f"list {name}", took)


def _cut(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
