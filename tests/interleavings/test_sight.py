"""The harness detects faults: each fault that is planted in a statement shows in some schedule, and so does a deadlock."""

from __future__ import annotations

import pytest

from tests.interleavings.exploring import Explored, explore, simplest
from tests.interleavings.faults import FAULTS, Fault
from tests.interleavings.interleaved_database import InterleavedDatabase
from tests.interleavings.names import uid
from tests.interleavings.planting import plant, planted
from tests.interleavings.reporting import report
from tests.interleavings.scripts import SCRIPTS
from tests.interleavings.sessions import Call
from tests.interleavings.steps.step import COMMIT, Step, rows


def explore_with(interleaved: InterleavedDatabase, fault: Fault) -> Explored:
    if fault.in_function:
        with planted(interleaved.dsn, fault):
            return explore(interleaved, fault.start_state, {name: SCRIPTS[name] for name in fault.scripts}, until_wrong=True)
    return explore(
        interleaved, fault.start_state, {name: plant(fault, SCRIPTS[name]) for name in fault.scripts}, until_wrong=True
    )


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_planted_fault_is_detected(interleaved: InterleavedDatabase, fault: Fault):
    assert explore_with(interleaved, fault).wrong


def touch(worker: str) -> Step:
    sends = Call("update tenure.workers set host = host where id = $1", (uid(worker).encode(),))
    return Step(f"touch {worker}", sends, lambda _: (), lambda _: [], locks=rows(worker), waits=rows(worker))


def test_a_deadlock_is_detected_and_reported_step_by_step(interleaved: InterleavedDatabase):
    scripts = {"up": (touch("W1"), touch("W2"), COMMIT), "down": (touch("W2"), touch("W1"), COMMIT)}
    found = explore(interleaved, "empty", scripts)
    text = report("empty", found, simplest(interleaved, "empty", scripts, found))
    assert found.schedules == 20
    assert "deadlock detected" in text
    assert "... waits for" in text
    assert "-> rolled back" in text
