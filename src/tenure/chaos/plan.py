"""Which fault is injected when: drawn from a seed, so that the same seed gives the same plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

STORM = 26.0
LULL = 14.0
"""Seconds in which no connection is broken: workers are condemned after ten seconds of unbroken contact, and it can be seen that
locks, refused rows and changed limits do not delay other work."""

CALM = 20.0
"""Seconds without any fault, after every few storms: a job that is stuck then is not stuck because of a fault."""

STORMS_BEFORE_CALM = 4
PERIOD = STORMS_BEFORE_CALM * (STORM + LULL) + CALM

STORM_RATE = 5.0  # faults a second
LULL_RATE = 0.5

Phase = Literal["storm", "lull", "calm"]


@dataclass(frozen=True, slots=True)
class PlannedFault:
    at: float
    """Seconds since the faults began."""
    kind: str
    seed: int
    """For the random choices of the fault itself: its target and its duration."""


def phase(at: float) -> Phase:
    in_period = at % PERIOD
    if in_period >= PERIOD - CALM:
        return "calm"
    return "storm" if in_period % (STORM + LULL) < STORM else "lull"


def is_quiet(at: float) -> bool:
    """From the last lull before a calm until the end of the calm: clients let the queue run empty, so that no job has to wait."""
    return at % PERIOD >= PERIOD - CALM - LULL


def draw_plan(
    seed: int, weights: Mapping[str, float], in_lulls: frozenset[str], rate: float = STORM_RATE
) -> Iterator[PlannedFault]:
    """Never ends. Every kind comes soon; after that, according to its weight. `rate`: faults a second in a storm."""
    random = Random(seed)  # noqa: S311 - chosen to be repeatable
    owed = random.sample(list(weights), len(weights))
    at = 0.0
    while True:
        at = _after_calm(at + random.expovariate(rate if phase(at) == "storm" else LULL_RATE))
        storm = phase(at) == "storm"
        if owed and storm and random.random() < 0.5:
            kind = owed.pop()
        else:
            kinds = [kind for kind in weights if storm or kind in in_lulls] or list(weights)
            [kind] = random.choices(kinds, [weights[kind] for kind in kinds])
        yield PlannedFault(at, kind, random.randrange(1 << 32))


def _after_calm(at: float) -> float:
    return at - at % PERIOD + PERIOD if phase(at) == "calm" else at
