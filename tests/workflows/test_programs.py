"""Random programs of steps, waits, children and tasks, interrupted at random places, compute what the model does.

For other programs than the usual ones: TENURE_PROGRAMS=1000-1999 pytest --timeout=0 tests/workflows/test_programs.py
"""

from __future__ import annotations

import os

import pytest

from tenure.flow import waiting
from tests.worker.serving import serving
from tests.workflows.programs import Interpreter, every, model, program

AT_ONCE = 40
"""Programs that run at the same time."""


def seeds(first: int, last: int) -> list[range]:
    given = os.environ.get("TENURE_PROGRAMS")
    if given:
        first, last = map(int, given.split("-"))
    return [range(start, min(start + AT_ONCE, last + 1)) for start in range(first, last + 1, AT_ONCE)]


async def judge(app, sql, monkeypatch, group: range) -> None:
    monkeypatch.setattr(waiting, "SHORT", 0.0)  # every sleep suspends its workflow
    interpreter = Interpreter(app)
    async with serving(app, concurrency=8):
        handles = {seed: await interpreter.workflow.enqueue(seed) for seed in group}
        for seed in group:
            for op in every(program(seed)):
                if op.kind == "event":
                    await app.emit("number", op.number, key=f"{seed} {op.number}")
        results = {seed: await handle.result("60s") for seed, handle in handles.items()}
    assert interpreter.wrong == []
    assert results == {seed: model(program(seed)) for seed in group}
    for seed, handle in handles.items():
        wanted = [op for op in every(program(seed)) if op.kind not in ("sleep", "event", "value", "gather")]
        assert all(interpreter.ran[seed, op.number] >= 1 for op in wanted), seed
        assert all(interpreter.ran[seed, op.number] == 1 for op in wanted if "child" in op.kind), seed
        recorded = sql(
            "select what, count(*) from tenure.steps where job_id = %s and what in ('step', 'call') group by 1", handle.id
        )
        steps = sum(op.kind != "fail" and "child" not in op.kind for op in wanted) + sum(op.kind == "fallback" for op in wanted)
        failed = sum(op.kind == "fail" for op in wanted)
        calls = sum("child" in op.kind for op in wanted)
        counted = dict(recorded)
        # A failure that nothing followed is not recorded.
        assert steps <= counted.get("step", 0) <= steps + failed, seed
        assert counted.get("call", 0) == calls, seed


@pytest.mark.parametrize("group", seeds(0, 79), ids=lambda group: f"{group[0]}-{group[-1]}")
async def test_programs_compute_what_the_model_does(app, sql, monkeypatch, group):
    await judge(app, sql, monkeypatch, group)


@pytest.mark.slow
@pytest.mark.parametrize("group", seeds(1000, 1999), ids=lambda group: f"{group[0]}-{group[-1]}")
async def test_many_programs_compute_what_the_model_does(app, sql, monkeypatch, group):
    await judge(app, sql, monkeypatch, group)
