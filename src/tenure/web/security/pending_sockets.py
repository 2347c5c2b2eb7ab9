"""WebSockets that are open, but have not sent their token yet: clients without one can hold some of the server's
connections, not all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tenure.web.problems import Problem
from tenure.web.security.hosts import is_loopback

MOST = 1000
"""Of the 5000 connections of a server."""

MOST_OF_ADDRESS = 100


class PendingSockets:
    def __init__(self) -> None:
        self._by_address: Counter[str] = Counter()

    @contextmanager
    def entered(self, address: str) -> Iterator[None]:
        """Raises if there are too many. Connections from loopback are counted together only: they may come through a proxy."""
        most = MOST if is_loopback(address) else MOST_OF_ADDRESS
        if self._by_address[address] >= most or self._by_address.total() >= MOST:
            raise Problem(429, "too-many-connections", "too many connections wait for their token: try again in some seconds")
        self._by_address[address] += 1
        try:
            yield
        finally:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]
