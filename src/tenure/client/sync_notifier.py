"""Notifies listeners after commits of code without an event loop: at once when idle, in groups under load."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

from tenure.model.wakeup import Wakeup
from tenure.store.notifier import SHORTEST_GAP, next_gap

GRACE = 0.002
"""Seconds after which the thread sends what is due and no caller has sent."""

IDLE = 5.0
"""Seconds without a notification after which the thread ends; the next notification starts another."""


class SyncNotifier:
    """A thread that ends when it has nothing to do. A notification that cannot be sent is dropped: listeners also poll."""

    def __init__(self, send_due: Callable[[], None]) -> None:
        """`send_due()` waits for the connection, and then sends what `take()` returns. Notifications that were taken before
        would be sent on a new connection if the old one was closed meanwhile, and no one would close the new one."""
        self._send_due = send_due
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._pending: set[Wakeup] = set()
        self._calls = 0
        self._gap = SHORTEST_GAP
        self._next = 0.0
        """When the next notification may be sent, by the monotonic clock."""
        self._running = False

    def notify(self, wakeups: Collection[Wakeup]) -> None:
        self._calls += 1
        # Not sent yet, so it will be sent after the commit that this call is about: most calls of a loop end here.
        if not wakeups or (self._running and self._pending.issuperset(wakeups)):
            return
        with self._lock:
            self._pending.update(wakeups)
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
        if self._pending:
            self._send_due()

    def take_due(self) -> list[Wakeup]:
        """What should be sent now, for a caller that is about to use the connection anyway, and sends it. In a loop of enqueues
        this is faster than the thread, for which the loop would have to wait."""
        return self.take() if time.monotonic() >= self._next else []

    def take(self) -> list[Wakeup]:
        """All that is pending. For a caller that has the connection."""
        if not self._pending:
            return []
        with self._lock:
            wakeups, self._pending = sorted(self._pending), set()
            self._news.clear()
            self._gap, self._calls = next_gap(self._gap, self._calls), 0
            self._next = time.monotonic() + self._gap
        return wakeups

    def _run(self) -> None:
        while self._has_news():
            early = self._next and self._next + GRACE - time.monotonic()
            if early > 0:
                time.sleep(early)
            else:
                self.flush()

    def _has_news(self) -> bool:
        if self._news.wait(IDLE):
            return True
        with self._lock:  # the next caller finds no thread, and starts one
            self._running = self._news.is_set()
            return self._running
