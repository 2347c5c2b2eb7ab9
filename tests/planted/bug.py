"""What a planted bug is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

ORDERS = "tests/interleavings/test_interleavings.py::test_every_order_comes_to_the_same_as_one_by_one"
PROPERTIES = "tests/properties/test_store_machine.py::test_the_store_does_what_the_model_says[working]"


class Promise(StrEnum):
    """What the user relies on, and the bug breaks."""

    DURABLE = "an accepted job is durable, and created once"
    ONCE = "recorded once, by the holder of the claim"
    STALE = "a stale run writes nothing"
    TOGETHER = "the handler's rows and the completion commit together"
    BACK = "jobs of crashed workers are requeued, fast and without using an attempt"
    ORDER = "higher priority first, then first come, first served; no job is overlooked"
    OUTAGE = "the database may be unavailable for some time"
    LEADERS = "leaders are fenced"
    KEYS = "one job for one key"
    TIME = "jobs start at their time, and run no longer than they may"
    RECORD = "what happened is recorded"
    CONTROL = "what an operator decides is done"
    CHAINS = "a chain has one end, and every job that waits for it is unblocked"
    ACCESS = "no token does more than it may"
    LIMITS = "limits hold, over the whole fleet, and no limit group starves"


@dataclass(frozen=True)
class Edit:
    file: str
    """Below `src/tenure`."""
    old: str
    """Occurs in the file exactly once."""
    new: str


@dataclass(frozen=True, kw_only=True)
class Bug:
    name: str
    breaks: str
    """One line: what goes wrong."""
    promise: Promise
    edits: tuple[Edit, ...]
    """More than one if a second guard backs up the first, or if two places must agree."""
    caught_by: tuple[str, ...]
    """Ids of pytest, from the root of the repository. The first that fails is the catch."""
    shows_at_once: bool = False
    """Even the simplest job goes wrong. Other bugs must leave that alone: they are to be subtle."""
    by_error: bool = False
    """The error is what the bug is about: a test that cannot be set up, or a statement that cannot be parsed, is a catch."""
