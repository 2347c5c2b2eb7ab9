"""An input for every kind of the catalogue, and jobs as read from the database."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from tenure.simulate.catalogue import JOBS
from tenure.simulate.draws import noise
from tenure.simulate.expectations import expected

# Kinds with required arguments besides the seed.
NEEDED: dict[str, dict[str, Any]] = {"big_payload": {"text": noise(1, 500)}, "keyed": {"order": "order 1"}}

# It would crash the process that runs the tests.
ONLY_UNDER_A_SUPERVISOR = "kills_its_worker"


def input_of(kind: str, seed: int = 7) -> dict[str, Any]:
    return {"seed": seed, **NEEDED.get(kind, {})}


def job_as_expected(kind: str, **changes: Any) -> SimpleNamespace:
    """A job that ended as expected, except for the changes."""
    wanted = expected(kind, input_of(kind))
    right = {
        "id": uuid4(),
        "kind": kind,
        "input": input_of(kind),
        "state": wanted.state,
        "attempt": wanted.attempts or 0,
        "crashes": wanted.crashes,
        "output": wanted.output,
        "error": wanted.error_contains,
        "parent_id": None,
    }
    return SimpleNamespace(**right | changes)


ALL_KINDS = sorted(JOBS)
