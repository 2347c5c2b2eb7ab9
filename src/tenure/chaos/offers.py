"""What the clients of a campaign ask for: drawn from a seed.

Most jobs are over in milliseconds, so that there are many; those that last as long as a lease, more or less, fill most of the
slots' time; some fail, are given a delay, a key, another priority; some are hostile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tenure.chaos import work
from tenure.chaos.ledger import JobRequest
from tenure.client.job import Call, Job

WORDS = 400
"""So few keys that many offers meet."""

MOST_IN_A_BATCH = 300


@dataclass(frozen=True, slots=True)
class Drawn:
    offer: JobRequest
    call: Call[Any]


Inputs = Callable[[Random, float], tuple[Any, ...]]

AnyJob = Job[..., ..., Any, Any]
Table = list[tuple[AnyJob, float, Inputs]]


def nothing(_draws: Random, _lease: float) -> tuple[Any, ...]:
    return ()


def seconds(least: float, most: float) -> Inputs:
    return lambda draws, _lease: (round(draws.uniform(least, most), 4),)


def leases(least: float, most: float) -> Inputs:
    """In leases, since it is these that matter."""
    return lambda draws, lease: (round(draws.uniform(least, most) * lease, 3),)


def times(least: int, most: int) -> Inputs:
    return lambda draws, _lease: (draws.randint(least, most),)


BULK: Table = [
    (work.quick, 82, nothing),
    (work.brief, 10, seconds(0, 0.05)),
    (work.keyed, 2, lambda draws, _lease: (f"word {draws.randrange(WORDS)}",)),
    (work.flaky, 2, times(1, 3)),
    (work.sleepy, 1, times(1, 2)),
    (work.atomic, 2, seconds(0, 0.05)),
    (work.limited, 0.5, seconds(0, 0.02)),
    (work.changing, 1, times(0, 2)),
    (work.changing_declared, 0.5, seconds(0, 0.02)),
    (work.refused, 1, nothing),
    (work.refused_flaky, 0.5, times(1, 3)),
]

SLOW: Table = [
    (work.steady, 40, leases(0.2, 1.5)),
    (work.steady, 8, leases(1.5, 2.5)),
    (work.leased, 40, leases(0.5, 2)),
    (work.refused_silent, 2, nothing),
    (work.atomic, 6, leases(0.2, 1.5)),
    (work.threaded, 8, leases(0.2, 1.2)),
    (work.celled, 4, leases(0, 0.5)),
    (work.limited, 4, leases(0.05, 0.5)),
    (work.doomed, 8, nothing),
    (work.given_up, 3, nothing),
    (work.called_off, 3, nothing),
    (work.overdue, 3, nothing),
    (work.bulky, 3, lambda draws, _lease: ("x" * draws.choice([1_000, 50_000, 200_000]),)),
    (work.two_connections, 8, nothing),
    (work.self_canceling, 2, nothing),
    (work.forking, 1, nothing),
    (work.stubborn, 1, nothing),
    (work.blocking, 1, leases(0.2, 1.3)),
    (work.hogging, 1, nothing),
    (work.exiting, 0.5, nothing),
    (work.suicidal, 0.5, nothing),
    (work.segfaulting, 1, nothing),
]


OFTEN_DELAYED: tuple[AnyJob, ...] = (work.changing, work.changing_declared, work.refused)
"""Many of them are scheduled while a limit goes, or rows are refused."""


class Drawer:
    def __init__(self, seed: int, lease: float, number: Callable[[], int]) -> None:
        self.draws = Random(seed)  # noqa: S311 - chosen to be repeatable
        self._lease = lease
        self._number = number

    def batch(self) -> list[Drawn]:
        return [self._one(BULK) for _ in range(self.draws.choice([1, 20, 100, MOST_IN_A_BATCH, MOST_IN_A_BATCH]))]

    def slow(self) -> Drawn:
        """Mostly before the bulk: else they would wait behind ten thousand others, and few would run when faults come."""
        return self._one(SLOW, **({"priority": "high"} if self.draws.random() < 0.7 else {}))

    def _one(self, table: Table, **more: Any) -> Drawn:
        [(job, _, inputs)] = self.draws.choices(table, [weight for _, weight, _ in table])
        n, values = self._number(), inputs(self.draws, self._lease)
        key = values[0] if job is work.keyed else None
        bound = job.using(**self._options(job) | more, **({} if key is None else {"key": key}))
        return Drawn(JobRequest(n, job.name, key), bound.call(n, *values))

    def _options(self, job: AnyJob) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self.draws.random() < 0.1:
            options["priority"] = self.draws.choice(["critical", "high", "low", "background"])
        if self.draws.random() < (0.4 if job in OFTEN_DELAYED else 0.05):
            options["delay"] = round(self.draws.uniform(0.05, 3), 3)
        if self.draws.random() < 0.2:
            options["queue"] = "side"
        return options
