"""The list of bugs, each a mistake that a developer could make."""

from __future__ import annotations

from itertools import chain

from tests.planted import (
    chaining,
    claiming,
    connecting,
    deciding,
    entering,
    flowing,
    guarding,
    holding,
    leading,
    limiting,
    returning,
    running,
    scheduling,
    settling,
)
from tests.planted.bug import Bug

ROOMS = (
    settling,
    connecting,
    claiming,
    returning,
    holding,
    entering,
    leading,
    scheduling,
    running,
    deciding,
    limiting,
    chaining,
    flowing,
    guarding,
)
BUGS: tuple[Bug, ...] = tuple(chain.from_iterable(room.BUGS for room in ROOMS))
