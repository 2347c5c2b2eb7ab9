"""Mixes: many jobs of many kinds, drawn from a seed. The same seed gives the same jobs.

Two hundred jobs end within 30 s on 20 slots. A deadly mix takes longer: a job that has crashed two workers runs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tenure import Call, ConfigError
from tenure.simulate.catalogue import JOBS
from tenure.simulate.draws import noise

SEEDS = 1_000_000
PRIORITIES = {"critical": 1, "high": 3, "normal": 10, "low": 3, "background": 1}
ONE_DELAYED_IN = 20
LONGEST_DELAY_MS = 2000
ORDERS = 10  # few, so that keys repeat


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A drawn job, before it becomes a call."""

    kind: str
    input: Mapping[str, Any]
    priority: str = "normal"
    delay_ms: int = 0

    def call(self) -> Call[Any]:
        delay = f"{self.delay_ms}ms" if self.delay_ms else None
        return JOBS[self.kind].using(priority=self.priority, delay=delay).call(**self.input)


@dataclass(frozen=True, slots=True)
class Mix:
    name: str
    about: str
    weights: Mapping[str, int] = field(repr=False)
    """How often each kind is drawn, relative to the others."""

    def __post_init__(self) -> None:
        unknown = sorted(self.weights.keys() - JOBS.keys())
        if unknown or not any(self.weights.values()) or min(self.weights.values()) < 0:
            raise ConfigError(
                f"mix {self.name!r}: weights must be whole numbers, not all zero, for kinds of the catalogue; unknown: {unknown}"
            )

    def plan(self, seed: int) -> Iterator[PlannedCall]:
        """Endless: take as many as you need."""
        random = Random(f"{self.name} {seed}")  # noqa: S311 - not for security
        kinds, weights = list(self.weights), list(self.weights.values())
        while True:
            [kind] = random.choices(kinds, weights)
            input_ = {"seed": random.randrange(SEEDS), **_ARGUMENTS.get(kind, _no_arguments)(random, seed)}
            [priority] = random.choices(list(PRIORITIES), list(PRIORITIES.values()))
            delay = random.randrange(1, LONGEST_DELAY_MS) if random.randrange(ONE_DELAYED_IN) == 0 else 0
            yield PlannedCall(kind, input_, priority, delay)

    def draw(self, seed: int) -> Iterator[Call[Any]]:
        """Calls for `app.enqueue_many(islice(mix.draw(7), 200))`. Calls with the same key become one job."""
        return (planned.call() for planned in self.plan(seed))


def _no_arguments(random: Random, seed: int) -> dict[str, Any]:  # noqa: ARG001
    return {}


def _order(random: Random, seed: int) -> dict[str, Any]:
    """The same order has the same input. Another seed has other orders."""
    number = random.randrange(ORDERS)
    return {"seed": number, "order": f"order {seed}-{number}"}


def _children(random: Random, seed: int) -> dict[str, Any]:  # noqa: ARG001
    return {"children": random.randint(0, 10)}


_ARGUMENTS: dict[str, Callable[[Random, int], dict[str, Any]]] = {
    "flaky_until": lambda random, _: {"succeeds_at": random.randint(1, 5)},
    "cpu": lambda random, _: {"rounds": random.randrange(50_000, 500_000)},
    "big_payload": lambda random, _: {"text": noise(random.randrange(SEEDS), 500)},
    "chained": lambda random, _: {"links": random.randint(1, 5)},
    "fan_out": _children,
    "fan_out_in_thread": _children,
    "fan_out_in_process": _children,
    "snoozes": lambda random, _: {"times": random.randint(1, 3)},
    "keyed": _order,
}

_CALM = {"quick": 70, "slow": 12, "thread_nap": 12, "progress_steps": 4, "logs_lines": 2}
_ENQUEUING = {"chained": 4, "fan_out": 4, "ladder": 2, "keyed": 6, "atomic_write": 3, "atomic_in_thread": 3, "atomic_child": 3}
_HEAVY = {"cpu": 10, "progress_in_thread": 4, "asks_database": 4, "big_payload": 2, "big_output": 2, "needs_heartbeat": 2}
_RETRYING = {"flaky_until": 12, "last_chance": 4, "snoozes": 6}
_FAILING = {"fails_for_good": 4, "cancels_itself": 4, "always_failing": 4, "not_retryable": 4, "over_timeout": 2}
_DEADLY = {"kills_its_worker": 2}
_USUAL = {"quick": 30, "slow": 10, "thread_nap": 10, "flaky_until": 10}
_HOSTILE = {kind: 2 for kind in JOBS if kind not in _DEADLY} | _USUAL | {"forgets_heartbeat": 1}

MIXES = {
    mix.name: mix
    for mix in (
        Mix("calm", "mostly quick jobs, nothing fails", _CALM),
        Mix(
            "mixed",
            "a typical load: some jobs fail, some are retried, some enqueue others",
            _CALM | _ENQUEUING | _HEAVY | _RETRYING | _FAILING,
        ),
        Mix("hostile", "every kind except those that crash the worker itself", _HOSTILE),
        Mix("deadly", "like hostile, and some jobs crash their worker; needs `tenure worker`", _HOSTILE | _DEADLY),
    )
}
