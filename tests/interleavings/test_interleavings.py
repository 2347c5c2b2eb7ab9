"""In every order of the steps of three sessions, the outcome is as if their transactions had run one after another.

Every order of the steps is played on a real server. `judging.py` explains how a schedule is judged; `steps/` defines what a step
may do. TENURE_INTERLEAVINGS in the environment sets how much is played:

    (unset)   of the chosen triples, those with few schedules
    chosen    all of them
    50        all of them, and 50 other combinations of `FIELDS` and of longer scripts, drawn from TENURE_INTERLEAVINGS_SEED
    all       all of these, too: hundreds of thousands of schedules, one or two hours
"""

from __future__ import annotations

import os
import random

import pytest
from _pytest.mark import ParameterSet

from tests.interleavings.exploring import explore, simplest
from tests.interleavings.interleaved_database import InterleavedDatabase
from tests.interleavings.orders import number_of_orders
from tests.interleavings.reporting import report
from tests.interleavings.scripts import SCRIPTS
from tests.interleavings.triples import CHOSEN, Triple, campaign

HOW_MUCH = os.environ.get("TENURE_INTERLEAVINGS", "")
FEW = 250
"""A triple with at most this many schedules is always played."""

many = pytest.mark.skipif(not HOW_MUCH, reason="TENURE_INTERLEAVINGS=chosen plays these")


def chosen() -> list[ParameterSet]:
    return [pytest.param(triple, id=str(triple), marks=[many] if (triple.schedules or 0) > FEW else []) for triple in CHOSEN]


def others() -> list[Triple]:
    found = list(campaign())
    if HOW_MUCH == "all":
        return found
    # The same in all test processes of a run.
    seed = os.environ.get("TENURE_INTERLEAVINGS_SEED") or os.environ.get("PYTEST_XDIST_TESTRUNUID")
    return random.Random(seed).sample(found, min(int(HOW_MUCH), len(found))) if HOW_MUCH.isdigit() else []


def play(interleaved: InterleavedDatabase, triple: Triple) -> None:
    scripts = {name: SCRIPTS[name] for name in triple.names}
    found = explore(interleaved, triple.start_state, scripts)
    assert not found.wrong, report(triple.start_state, found, simplest(interleaved, triple.start_state, scripts, found))
    assert found.schedules == (triple.schedules or number_of_orders([len(script) for script in scripts.values()]))


@pytest.mark.parametrize("triple", chosen())
def test_every_order_comes_to_the_same_as_one_by_one(interleaved: InterleavedDatabase, triple: Triple):
    play(interleaved, triple)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("triple", others(), ids=str)
def test_every_three_scripts_come_to_the_same_as_one_by_one(interleaved: InterleavedDatabase, triple: Triple):
    play(interleaved, triple)
