"""Notifies listeners after commits of code without an event loop: at once when idle, in groups under load."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from tenure.model.errors import StoreUnavailable
from tenure.store.faults import Refused
from tenure.store.notifier import SHORTEST_GAP, next_gap
from tenure.store.wakeup import Wakeup

log = logging.getLogger("tenure")

IDLE = 5.0
"""Seconds without a notification after which the thread ends; the next notification starts another."""


class SyncNotifier:
    """A thread that ends when it has nothing to do. A notification that cannot be sent is dropped: listeners also poll."""

    def __init__(self, send: Callable[[list[Wakeup]], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._pending: set[Wakeup] = set()
        self._calls = 0
        self._running = False

    def notify(self, wakeups: Iterable[Wakeup]) -> None:
        with self._lock:
            self._pending.update(wakeups)
            self._calls += 1
            self._news.set()
            if self._running:
                return
            self._running = True
        try:
            threading.Thread(target=self._run, name="tenure notifier", daemon=True).start()
        except RuntimeError:  # the interpreter is shutting down
            self._running = False
            self.flush()

    def flush(self) -> None:
        """Sends the pending notifications now."""
        with self._lock:
            wakeups, self._pending = sorted(self._pending), set()
            self._news.clear()
        if not wakeups:
            return
        try:
            self._send(wakeups)
        except (StoreUnavailable, Refused) as error:
            log.debug("notification not sent", extra={"error": str(error)})

    def _run(self) -> None:
        gap = SHORTEST_GAP
        while self._has_news():
            self.flush()
            self._calls = 0
            time.sleep(gap)
            gap = next_gap(gap, self._calls)

    def _has_news(self) -> bool:
        if self._news.wait(IDLE):
            return True
        with self._lock:  # the next caller finds no thread, and starts one
            self._running = self._news.is_set()
            return self._running
