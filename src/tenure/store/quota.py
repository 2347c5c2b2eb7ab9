"""How many connections handlers may hold: one for each slot, and one more when otherwise no run could continue.

If every run that holds a connection waits for another one, all of them wait forever. In that case the first of them gets a
connection beyond the quota.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

Holder = object
"""A run."""


class Quota:
    """Safe to use from any thread. Never blocks."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._held: Counter[Holder] = Counter()
        self._waiting: dict[object, tuple[Holder, Callable[[], None]]] = {}
        self._lock = threading.Lock()

    @property
    def in_use(self) -> int:
        return self._held.total()

    def request(self, holder: Holder, granted: Callable[[], None]) -> object:
        """`granted()` is called when the holder may have a connection, possibly at once. Returns a ticket for `withdraw`."""
        ticket = object()
        with self._lock:
            self._waiting[ticket] = (holder, granted)
            callbacks = self._grant()
        for callback in callbacks:
            callback()
        return ticket

    def withdraw(self, ticket: object) -> bool:
        """False: the request was granted already, and has to be released."""
        with self._lock:
            return self._waiting.pop(ticket, None) is not None

    def release(self, holder: Holder) -> None:
        with self._lock:
            self._held[holder] -= 1
            self._held += Counter()  # removes holders of nothing
            callbacks = self._grant()
        for callback in callbacks:
            callback()

    def _grant(self) -> list[Callable[[], None]]:
        callbacks = []
        while self._waiting:
            if self.in_use < self.size:
                ticket = next(iter(self._waiting))
            elif self._is_deadlocked:
                ticket = next(ticket for ticket, (holder, _) in self._waiting.items() if holder in self._held)
            else:
                break
            holder, granted = self._waiting.pop(ticket)
            self._held[holder] += 1
            callbacks.append(granted)
        return callbacks

    @property
    def _is_deadlocked(self) -> bool:
        waiting = {holder for holder, _ in self._waiting.values()}
        return all(holder in waiting for holder in self._held)
