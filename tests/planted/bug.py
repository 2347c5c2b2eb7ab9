"""What a planted bug is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

ORDERS = "tests/interleavings/test_interleavings.py::test_every_order_comes_to_the_same_as_one_by_one"
PROPERTIES = "tests/properties/test_store_machine.py::test_the_store_does_what_the_model_says[working]"


class Promise(StrEnum):
    """What the user relies on, and the bug breaks."""

    DURABLE = "what was accepted is durable, and made once"
    ONCE = "recorded once, by the holder of the claim"
    STALE = "a stale run writes nothing"
    TOGETHER = "the handler's rows and the completion commit together"
    BACK = "crashed work comes back, fast and for free"
    ORDER = "higher priority first, then first come, first served; nobody is overlooked"
    OUTAGE = "the database may go away"
    LEADERS = "leaders are fenced"
    KEYS = "one job for one key"
    TIME = "at its time, and for as long as it may"
    RECORD = "the record tells what happened"
    CONTROL = "what people decide is done"
    CHAINS = "a chain has one end, and whoever waits for it learns of it"
    ACCESS = "no token does more than it may"
    LIMITS = "limits hold, over the whole fleet, and nobody starves behind them"


@dataclass(frozen=True)
class Edit:
    file: str
    """Below `src/tenure`."""
    old: str
    """Stands in the file exactly once."""
    new: str


@dataclass(frozen=True, kw_only=True)
class Bug:
    name: str
    breaks: str
    """One line: what goes wrong."""
    promise: Promise
    edits: tuple[Edit, ...]
    """More than one where a second guard stands behind the first, or where two sides must agree."""
    caught_by: tuple[str, ...]
    """Ids of pytest, from the root of the repository. The first that fails is the catch."""
    shows_at_once: bool = False
    """Even the simplest job goes wrong. Other bugs must leave that alone: they are to be subtle."""
    by_error: bool = False
    """A test that cannot even be set up counts as a catch."""
