"""A hang-up means two things: a service is asked to take up new code, a program at a terminal that nobody sees it any more."""

from __future__ import annotations

import os


class Terminal:
    """The terminal that we were started at, if any."""

    def __init__(self) -> None:
        self._had_one = _there_is_one()

    @property
    def is_gone(self) -> bool:
        return self._had_one and not _there_is_one()


def _there_is_one() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
