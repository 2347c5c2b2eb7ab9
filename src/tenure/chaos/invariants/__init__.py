"""The promises, one file each. `INVARIANTS` is the table of all, `RULES` are those that are checked."""

from __future__ import annotations

from tenure.chaos.invariants.accepted import Accepted
from tenure.chaos.invariants.attempts import Attempts
from tenure.chaos.invariants.attended import Attended
from tenure.chaos.invariants.case import Rule
from tenure.chaos.invariants.drained import Drained, Repaired
from tenure.chaos.invariants.due import Due
from tenure.chaos.invariants.effects import Effects
from tenure.chaos.invariants.ended import Ended
from tenure.chaos.invariants.fenced import Fenced
from tenure.chaos.invariants.held import Held
from tenure.chaos.invariants.leaders import Leaders
from tenure.chaos.invariants.legal import Legal
from tenure.chaos.invariants.limits import Limits
from tenure.chaos.invariants.offered import Offered
from tenure.chaos.invariants.order import Order
from tenure.chaos.invariants.orders import Orders
from tenure.chaos.invariants.served import Served
from tenure.chaos.invariants.slots import Slots
from tenure.chaos.invariants.stale import Stale
from tenure.chaos.invariants.ticks import Ticks
from tenure.chaos.invariants.told import Told
from tenure.chaos.invariants.whole import Whole
from tenure.chaos.verdict import Invariant

__all__ = ["INVARIANTS", "RULES"]

RULES: tuple[type[Rule], ...] = (
    Whole, Accepted, Offered, Ended, Fenced, Held, Stale, Legal, Slots, Order, Ticks, Leaders, Attempts, Drained, Told, Effects,
    Orders, Limits, Attended, Served, Due, Repaired,
)  # fmt: skip

_NOT_YET = (
    Invariant("I12", "steps once, in order", "a step begins after those it needs, and is recorded once", checked=False),
    Invariant("I16", "all is audited", "each call that changes something leaves a line of who and what", checked=False),
)

INVARIANTS: tuple[Invariant, ...] = tuple(
    sorted([*(rule.invariant for rule in RULES), *_NOT_YET], key=lambda invariant: int(invariant.number[1:]))
)
