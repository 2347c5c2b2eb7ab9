"""Sentinel: leave unchanged. None cannot serve, because it is a valid input."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Unchanged(Enum):
    UNCHANGED = "keep"

    def __repr__(self) -> str:
        return self.name


UNCHANGED: Final = Unchanged.UNCHANGED
