"""The table of `python -m benchmarks`: medians, and goals that the worst round decides."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from benchmarks import report
from benchmarks.figures import Figures
from benchmarks.rows import RATE, Row, Target
from benchmarks.sizes import QUICK


def figures(**rounds: list[float]) -> Figures:
    found = Figures()
    for key, values in rounds.items():
        for value in values:
            found.add(key, value)
    return found


@pytest.mark.parametrize(
    ("target", "rounds", "reached"),
    [
        (Target(at_least=100), [100, 150, 140], True),
        (Target(at_least=100), [99, 150, 140], False),
        (Target(at_most=100), [100, 50, 60], True),
        (Target(at_most=100), [101, 50, 60], False),
    ],
)
def test_a_goal_is_reached_if_the_worst_round_reaches_it(target, rounds, reached):
    row = Row("drain", "c", "drain", RATE, targets=(target,))
    assert row.reached(figures(drain=rounds)) is reached
    assert row.worst(figures(drain=rounds)) == rounds[0]


def test_a_goal_for_a_ratio_is_decided_by_the_worst_ratio():
    row = Row("drain", "c", "drain", RATE, "bare", "bare loop", (Target(at_least=0.5, of_ratio=True),))
    found = figures(drain=[60, 40, 60], bare=[100, 100, 100])
    assert row.worst_ratio(found) == pytest.approx(0.4)
    assert row.reached(found) is False


def test_without_a_goal_the_unit_decides_what_is_worse():
    found = figures(a=[1, 3, 2])
    assert Row("a", "c", "late", "ms").worst(found) == 3
    assert Row("a", "c", "drain", RATE).worst(found) == 1


def test_the_published_table_has_the_median_the_worst_round_and_the_goal():
    found = figures(ceiling=[40_000, 50_000, 60_000], drain_1=[19_000, 30_000, 36_000])
    bench = SimpleNamespace(figures=found, sizes=QUICK, noise=[])
    bench.noise = [SimpleNamespace(step="drain", cores=None, speed_ms=1.0)]
    lines = report.as_markdown("a machine", bench).splitlines()  # type: ignore[arg-type]
    assert "| (a) ceiling: bare claim and settle | 50,000 jobs/s | 40,000 |  |  |  |  |" in lines
    assert "| (c) drain, one child | 30,000 jobs/s | 19,000 | 0.60 of (a) | 0.47 | >= 20,000 and >= 0.40x | **no** |" in lines
