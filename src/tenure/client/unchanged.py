"""What is said of something that is to stay as it is: no value of any input can mean that, and None may mean something else."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Unchanged(Enum):
    UNCHANGED = "keep"

    def __repr__(self) -> str:
        return self.name


UNCHANGED: Final = Unchanged.UNCHANGED
