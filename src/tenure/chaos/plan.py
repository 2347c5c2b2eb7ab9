"""Which fault comes when: drawn from a seed, so that the same seed gives the same plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

STORM = 26.0
LULL = 14.0
"""Seconds in which only processes are struck: those who care for the dead act after ten seconds of unbroken contact."""

IN_STORM = 5.0  # faults a second
IN_LULL = 0.3


@dataclass(frozen=True, slots=True)
class Planned:
    at: float
    """Seconds after the begin."""
    kind: str
    seed: int
    """Of the draws that the fault itself makes: whom it strikes, for how long."""


def draw_plan(seed: int, weights: Mapping[str, float], in_lulls: frozenset[str]) -> Iterator[Planned]:
    """Without end. Every kind comes soon; after that, as often as its weight says."""
    draws = Random(seed)  # noqa: S311 - chosen to be repeatable
    owed = draws.sample(list(weights), len(weights))
    at = 0.0
    while True:
        at += draws.expovariate(IN_STORM if _in_storm(at) else IN_LULL)
        if owed and _in_storm(at) and draws.random() < 0.5:
            kind = owed.pop()
        else:
            kinds = [kind for kind in weights if _in_storm(at) or kind in in_lulls] or list(weights)
            [kind] = draws.choices(kinds, [weights[kind] for kind in kinds])
        yield Planned(at, kind, draws.randrange(1 << 32))


def _in_storm(at: float) -> bool:
    return at % (STORM + LULL) < STORM
