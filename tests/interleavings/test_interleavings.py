"""Whatever the order in which three sessions take their steps, the outcome is as if their transactions had come one by one.

Every order of the steps is played on a real server. With TENURE_INTERLEAVINGS=all in the environment, every three scripts of
`FIELDS`, and longer ones, are played against each other too: hundreds of thousands of schedules, for an hour or two.
How a schedule is judged is told in `judging.py`; what a step may do, in `steps/`.
"""

from __future__ import annotations

import os

import pytest

from tests.interleavings.exploring import explore, plainest
from tests.interleavings.orders import number_of_orders
from tests.interleavings.scripts import SCRIPTS
from tests.interleavings.stage import Stage
from tests.interleavings.telling import tell
from tests.interleavings.triples import CHOSEN, Triple, campaign

everything = os.environ.get("TENURE_INTERLEAVINGS") == "all"


def play(stage: Stage, triple: Triple) -> None:
    scripts = {name: SCRIPTS[name] for name in triple.names}
    found = explore(stage, triple.scene, scripts)
    assert not found.wrong, tell(triple.scene, found, plainest(stage, triple.scene, scripts, found))
    assert found.schedules == (triple.schedules or number_of_orders([len(script) for script in scripts.values()]))


@pytest.mark.parametrize("triple", CHOSEN, ids=str)
def test_every_order_comes_to_the_same_as_one_by_one(stage: Stage, triple: Triple):
    play(stage, triple)


@pytest.mark.skipif(not everything, reason="TENURE_INTERLEAVINGS=all plays these, for an hour or two")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("triple", list(campaign()) if everything else [], ids=str)
def test_every_three_scripts_come_to_the_same_as_one_by_one(stage: Stage, triple: Triple):
    play(stage, triple)
