"""Which jobs the clients of a campaign enqueue: drawn from a seed.

Most jobs take milliseconds, so that there are many. Jobs that run for about the length of a lease fill most of the slots' time.
Some fail, have a delay, a key or another priority; some are hostile. A share of the many are workflows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tenure.chaos import jobs, workflows
from tenure.chaos.ledger import JobRequest
from tenure.client.job import Call, Job

KEYS = 400
"""Few enough that many requests use the same key."""

MAX_BATCH = 300


@dataclass(frozen=True, slots=True)
class DrawnJob:
    request: JobRequest
    call: Call[Any]


Inputs = Callable[[Random, float], tuple[Any, ...]]

AnyJob = Job[..., ..., Any, Any]
Table = list[tuple[AnyJob, float, Inputs]]


def no_arguments(_random: Random, _lease: float) -> tuple[Any, ...]:
    return ()


def seconds(least: float, most: float) -> Inputs:
    return lambda random, _lease: (round(random.uniform(least, most), 4),)


def leases(least: float, most: float) -> Inputs:
    """In multiples of the lease, which is what matters."""
    return lambda random, lease: (round(random.uniform(least, most) * lease, 3),)


def times(least: int, most: int) -> Inputs:
    return lambda random, _lease: (random.randint(least, most),)


BULK: Table = [
    (jobs.quick, 82, no_arguments),
    (jobs.brief, 10, seconds(0, 0.05)),
    (jobs.keyed, 2, lambda random, _lease: (f"word {random.randrange(KEYS)}",)),
    (jobs.flaky, 2, times(1, 3)),
    (jobs.snoozing, 1, times(1, 2)),
    (jobs.chained, 1, times(1, 5)),
    (jobs.atomic, 2, seconds(0, 0.05)),
    (jobs.limited, 0.5, seconds(0, 0.02)),
    (jobs.changing, 1, times(0, 2)),
    (jobs.changing_declared, 0.5, seconds(0, 0.02)),
    (jobs.refused, 1, no_arguments),
    (jobs.refused_flaky, 0.5, times(1, 3)),
]

SLOW: Table = [
    (jobs.steady, 40, leases(0.2, 1.5)),
    (jobs.steady, 8, leases(1.5, 2.5)),
    (jobs.with_own_lease, 40, leases(0.5, 2)),
    (jobs.refused_without_heartbeat, 2, no_arguments),
    (jobs.atomic, 6, leases(0.2, 1.5)),
    (jobs.threaded, 8, leases(0.2, 1.2)),
    (jobs.in_process, 4, leases(0, 0.5)),
    (jobs.limited, 4, leases(0.05, 0.5)),
    (jobs.always_failing, 8, no_arguments),
    (jobs.failed_by_handler, 3, no_arguments),
    (jobs.canceled_by_handler, 3, no_arguments),
    (jobs.timing_out, 3, no_arguments),
    (jobs.large_input, 3, lambda random, _lease: ("x" * random.choice([1_000, 50_000, 200_000]),)),
    (jobs.two_connections, 8, no_arguments),
    (jobs.self_canceling, 2, no_arguments),
    (jobs.forking, 1, no_arguments),
    (jobs.stubborn, 1, no_arguments),
    (jobs.blocking, 1, leases(0.2, 1.3)),
    (jobs.holding_the_gil, 1, no_arguments),
    (jobs.exiting, 0.5, no_arguments),
    (jobs.killing_itself, 0.5, no_arguments),
    (jobs.segfaulting, 1, no_arguments),
]


WORKFLOWS: Table = [
    (workflows.workflow_sequence, 50, times(5, 30)),
    (workflows.workflow_waiting, 20, no_arguments),
    (workflows.workflow_parent, 8, times(1, 4)),
    (workflows.workflow_flaky, 10, times(0, 2)),
    (workflows.workflow_undone, 12, lambda random, _lease: (random.choice(workflows.UNDONE_WAYS),)),
]

OFTEN_DELAYED: tuple[AnyJob, ...] = (jobs.changing, jobs.changing_declared, jobs.refused)
"""Many of these are scheduled while a limit is removed or rows are refused."""


class JobMix:
    def __init__(self, seed: int, lease: float, workflows: float, number: Callable[[], int]) -> None:
        """`workflows`: their share of the bulk, from 0 to 1."""
        self.random = Random(seed)  # noqa: S311 - chosen to be repeatable
        self._lease = lease
        self._workflows = workflows
        self._number = number

    def batch(self) -> list[DrawnJob]:
        return [self._bulk() for _ in range(self.random.choice([1, 20, 100, MAX_BATCH, MAX_BATCH]))]

    def slow(self) -> DrawnJob:
        """Mostly of higher priority than the bulk: behind ten thousand other jobs, few would run while faults are active."""
        return self._one(SLOW, **({"priority": "high"} if self.random.random() < 0.7 else {}))

    def _bulk(self) -> DrawnJob:
        return self._one(WORKFLOWS if self.random.random() < self._workflows else BULK)

    def _one(self, table: Table, **more: Any) -> DrawnJob:
        [(job, _, inputs)] = self.random.choices(table, [weight for _, weight, _ in table])
        n, values = self._number(), inputs(self.random, self._lease)
        key = values[0] if job is jobs.keyed else None
        bound = job.using(**self._options(job) | more, **({} if key is None else {"key": key}))
        return DrawnJob(JobRequest(n, job.name, key), bound.call(n, *values))

    def _options(self, job: AnyJob) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self.random.random() < 0.1:
            options["priority"] = self.random.choice(["critical", "high", "low", "background"])
        if self.random.random() < (0.4 if job in OFTEN_DELAYED else 0.05):
            options["delay"] = round(self.random.uniform(0.05, 3), 3)
        if self.random.random() < 0.2:
            options["queue"] = "side"
        return options
