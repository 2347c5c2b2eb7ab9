"""The store's statements against the model of the legal moves, in long random lives.

What is run by default is the same every time: seeds 0, 1, 2, ... until the steps are made. For a campaign of other lives:

    TENURE_PROPERTY_STEPS=1000000 pytest --timeout=0 tests/properties

A failure tells its seed. With that one alone the life is made as short as it still fails, which takes some minutes:

    TENURE_PROPERTY_SEED=17 pytest --timeout=0 tests/properties -k working
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.rules.base import StoreMachine
from tests.properties.rules.caretaking import DeathRules, LeaderRules, PromotingRules
from tests.properties.rules.deciding import DecidingRules
from tests.properties.rules.entering import EnteringRules
from tests.properties.store_database import StoreDatabase

STEPS = 2_100
"""Moves made by all tests of this file together; after each statement of a move everything is compared."""

LIFE = 100
"""Moves of one life, from an empty store. Longer ones mostly make the comparison dearer."""

GROUP = 10
"""Lives of one seed. From the eleventh on Hypothesis would rather vary those it had than make new ones."""

PLAIN = settings(
    max_examples=GROUP,
    stateful_step_count=LIFE,
    deadline=None,
    database=None,
    # A fault is found within seconds; making it small takes minutes.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
SHRINKING = settings(PLAIN, phases=[Phase.generate, Phase.shrink])


class Working(EnteringRules, DeathRules):
    """Jobs are worked off by workers that die."""


class Deciding(EnteringRules, DecidingRules, PromotingRules):
    """People meddle with jobs while they are worked off."""


class Leading(EnteringRules, LeaderRules):
    """Leaders come and go."""


MACHINES = {"working": Working, "deciding": Deciding, "leading": Leading}


@pytest.mark.parametrize("name", MACHINES)
def test_the_store_does_what_the_model_says(store: StoreDatabase, name: str) -> None:
    share = int(os.environ.get("TENURE_PROPERTY_STEPS", STEPS)) / len(MACHINES)
    for number, profile in _seeds():
        _run(MACHINES[name], store, number, profile)
        if store.steps >= share:
            break
    assert store.steps >= share or profile is SHRINKING
    # Lives that end early would make many steps of little use.
    assert store.steps > store.lives * LIFE / 2


def _seeds() -> Iterator[tuple[int, settings]]:
    if given := os.environ.get("TENURE_PROPERTY_SEED"):
        return iter([(int(given), SHRINKING)])
    first = random.SystemRandom().randrange(10**9) if "TENURE_PROPERTY_STEPS" in os.environ else 0
    return ((number, PLAIN) for number in count(first))


def _run(machine: type[StoreMachine], store: StoreDatabase, number: int, profile: settings) -> None:
    @seed(number)
    def begin() -> StoreMachine:
        return machine(store)

    try:
        run_state_machine_as_test(begin, settings=profile)
    except Exception as error:
        error.add_note(f"TENURE_PROPERTY_SEED={number}")
        raise
