"""Processes that must not outlive the process that started them, including what handlers fork."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import threading
from collections import deque

_PR_SET_PDEATHSIG = 1
_libc = (
    ctypes.CDLL(None) if sys.platform == "linux" else None
)  # loaded here, because that is not safe in a process that was just forked

_owner: list[int] = []
_forks = [0]
_forking = threading.local()


def die_with(starter: int, number: signal.Signals = signal.SIGKILL) -> None:
    """From now on this process receives the signal when its starter dies (Linux only)."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != starter:
        os._exit(0)  # it died before the call


def forks() -> int:
    """How many forks lie between this process and the first one. `os.getpid()` would be a system call, twice for every job."""
    return _forks[0]


def exit_if_forked(forks_before: int) -> None:
    """Ends a forked copy of the process when it returns from the handler. Only the original continues."""
    if _forks[0] != forks_before:
        os._exit(0)


def _count_fork() -> None:
    _forks[0] += 1


os.register_at_fork(after_in_child=_count_fork)


def own_forks() -> None:
    """From now on a process that this one forks (`os.fork`, multiprocessing) ends with it, is ended by SIGTERM, and does not
    run the worker.

    Processes that a forked process forks are not affected, like daemons.
    """
    _owner[:] = [os.getpid()]
    os.register_at_fork(before=_before_fork, after_in_parent=_unblock, after_in_child=_own)


def _before_fork() -> None:
    # A signal to the new process must wait until it has removed the handlers of this one.
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    # The kernel watches the thread that forks, not the process. The lifetime of threads that the handler started is unknown.
    thread = threading.current_thread()
    lasts = thread is threading.main_thread() or thread.name.startswith("tenure")
    # uvloop calls this hook when it starts another program, asyncio does not. Such programs are not affected.
    starts_a_program = sys._getframe(1).f_globals.get("__name__") == "asyncio.subprocess"  # noqa: SLF001
    _forking.watch = lasts and not starts_a_program
    try:
        _forking.loop = asyncio.get_running_loop()
    except RuntimeError:
        _forking.loop = None


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _own() -> None:
    if _owner:
        _begin_as_child_of(_owner.pop())
    _unblock()


def _begin_as_child_of(process: int) -> None:
    # Otherwise a signal to this process would wake the event loop of its parent, which would handle it as its own.
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if _forking.watch:
        die_with(process)
    _exit_when_the_loop_continues()


def _exit_when_the_loop_continues() -> None:
    """A forked copy of a coroutine that reaches its next `await` would run the worker a second time, on the same sockets."""
    loop = _forking.loop
    if loop is not None:
        loop.call_soon(os._exit, 0)
        ready = getattr(loop, "_ready", None)  # of asyncio's own loops
        if isinstance(ready, deque):
            ready.rotate(1)  # before all callbacks that were ready when the handler forked
