"""SIGTERM and SIGINT before the supervisor handles them itself.

Without a handler such a signal ends the process with 143, and as PID 1 of a container it is lost. Imports little: it is the
first thing that `tenure worker`, `up` and `dev` do, and so do their worker processes.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # as in `typing`, which takes milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

COMMANDS = ("worker", "up", "dev")
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def _end_at_once() -> None:
    # Not SystemExit: while modules are imported, it may end up in a callback that prints and drops it.
    os._exit(0)


def _exit() -> None:
    raise SystemExit(0)


def note() -> None:
    """Nothing more than `was_asked`."""


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
    """From now on a signal ends the process with exit code 0, if the command line is that of a command that runs workers."""
    if arguments[:1] and arguments[0] in COMMANDS:
        _handle(_end_at_once)


def clean_up_first() -> None:
    """From now on a signal raises SystemExit(0): something may have been started that has to be stopped."""
    if _requests.listening:
        _requests.react = _exit
        if _requests.asked:
            _exit()


def remember() -> None:
    """From now on a signal is only remembered, for `was_asked`."""
    if _requests.listening:
        _requests.react = note


def remember_from_start() -> None:
    """The same, for a process that did not `listen` before."""
    _handle(note)


def was_asked() -> bool:
    return _requests.asked


def swap_reaction(react: Callable[[], None]) -> Callable[[], None]:
    """What a signal does from now on, instead of what is returned."""
    before, _requests.react = _requests.react, react
    return before


def ignore_more() -> None:
    """The supervisor has stopped. What remains is short, and more signals must not interrupt it."""
    if _requests.listening:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _handle(react: Callable[[], None]) -> None:
    _requests.react, _requests.listening = react, True
    for number in SIGNALS:
        signal.signal(number, _requests.on_signal)
