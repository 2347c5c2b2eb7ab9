"""Which fault comes when: drawn from a seed, so that the same seed gives the same plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

STORM = 26.0
LULL = 14.0
"""Seconds in which no connection is broken: workers are condemned after ten seconds of unbroken contact, and what must not be
held up by locks, refused rows and changed limits can be seen."""

CALM = 20.0
"""Seconds in which nothing is struck, after every few storms: whatever is stuck then is stuck by itself."""

STORMS_BEFORE_CALM = 4
PERIOD = STORMS_BEFORE_CALM * (STORM + LULL) + CALM

IN_STORM = 5.0  # faults a second
IN_LULL = 0.5

Phase = Literal["storm", "lull", "calm"]


@dataclass(frozen=True, slots=True)
class Planned:
    at: float
    """Seconds after the begin."""
    kind: str
    seed: int
    """Of the draws that the fault itself makes: whom it strikes, for how long."""


def phase(at: float) -> Phase:
    place = at % PERIOD
    if place >= PERIOD - CALM:
        return "calm"
    return "storm" if place % (STORM + LULL) < STORM else "lull"


def is_quiet(at: float) -> bool:
    """From the last lull before a calm until its end: clients let the queue run empty, so that whatever waits then can run."""
    return at % PERIOD >= PERIOD - CALM - LULL


def draw_plan(seed: int, weights: Mapping[str, float], in_lulls: frozenset[str]) -> Iterator[Planned]:
    """Without end. Every kind comes soon; after that, as often as its weight says."""
    draws = Random(seed)  # noqa: S311 - chosen to be repeatable
    owed = draws.sample(list(weights), len(weights))
    at = 0.0
    while True:
        at = _after_calm(at + draws.expovariate(IN_STORM if phase(at) == "storm" else IN_LULL))
        storm = phase(at) == "storm"
        if owed and storm and draws.random() < 0.5:
            kind = owed.pop()
        else:
            kinds = [kind for kind in weights if storm or kind in in_lulls] or list(weights)
            [kind] = draws.choices(kinds, [weights[kind] for kind in kinds])
        yield Planned(at, kind, draws.randrange(1 << 32))


def _after_calm(at: float) -> float:
    return at - at % PERIOD + PERIOD if phase(at) == "calm" else at
