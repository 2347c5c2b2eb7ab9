"""SIGTERM and SIGINT before the supervisor handles them itself.

Without a handler such a signal ends the process with exit code 143, and PID 1 of a container ignores it. This module imports
little, because it is the first one that `tenure worker`, `up`, `dev` and their worker processes use.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # instead of `typing`, which takes milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

COMMANDS = ("worker", "up", "dev")
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def _end_at_once() -> None:
    # Not SystemExit: during imports it may be raised in a callback that prints and ignores it.
    os._exit(0)


def _exit() -> None:
    raise SystemExit(0)


def note() -> None:
    """Only sets `was_asked()`."""


class _StopRequests:
    def __init__(self) -> None:
        self.asked = False
        self.listening = False
        self.react: Callable[[], None] = note

    def on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of a signal handler
        self.asked = True
        self.react()


_requests = _StopRequests()


def listen(arguments: list[str]) -> None:
    """From now on a signal ends the process with exit code 0, if the command runs workers."""
    if arguments[:1] and arguments[0] in COMMANDS:
        _handle(_end_at_once)


def clean_up_first() -> None:
    """From now on a signal raises SystemExit(0), so that what was started can be stopped."""
    if _requests.listening:
        _requests.react = _exit
        if _requests.asked:
            _exit()


def remember() -> None:
    """From now on a signal only sets `was_asked()`."""
    if _requests.listening:
        _requests.react = note


def remember_from_start() -> None:
    """The same, for a process that did not call `listen()`."""
    _handle(note)


def was_asked() -> bool:
    return _requests.asked


def swap_reaction(react: Callable[[], None]) -> Callable[[], None]:
    """Sets the reaction to a signal, and returns the previous one."""
    before, _requests.react = _requests.react, react
    return before


def ignore_more() -> None:
    """The supervisor has stopped. The remaining work is short, and further signals must not interrupt it."""
    if _requests.listening:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _handle(react: Callable[[], None]) -> None:
    _requests.react, _requests.listening = react, True
    for number in SIGNALS:
        signal.signal(number, _requests.on_signal)
