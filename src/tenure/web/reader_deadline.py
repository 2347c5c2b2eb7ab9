"""Ends connections of clients that do not read what they are sent: each would hold its answers and its place for ever."""

from __future__ import annotations

import asyncio

SEND_WITHIN = 30.0
"""Seconds for a client to take all that it was sent, or at least `LEAST_TAKEN` of it."""

LEAST_TAKEN = 64 * 1024
"""Bytes. A large answer may take a slow client longer than the time above."""


class ReaderDeadline(asyncio.Protocol):
    """For a protocol of uvicorn, which waits for its client without a limit. Closing waits too: it sends what is left first."""

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    _deadline: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        self._stop_waiting()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_reader(self) -> None:
        self._deadline = self.loop.call_later(SEND_WITHIN, self._end_unless_taken, self.transport.get_write_buffer_size())

    def _end_unless_taken(self, unsent: int) -> None:
        """While writing is paused hardly anything is added, so what is missing now has been taken."""
        if unsent - self.transport.get_write_buffer_size() >= LEAST_TAKEN:
            self._wait_for_reader()
        else:
            self.transport.abort()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
