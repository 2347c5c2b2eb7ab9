"""Ends connections of clients that do not read what they are sent: each would keep its answers and a connection forever."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from contextlib import suppress

SEND_WITHIN = 30.0
"""Seconds for a client to take `LEAST_TAKEN` of what it was sent, or half of what is left."""

LEAST_TAKEN = 64 * 1024
"""Bytes. A large answer may take a slow client longer than the time above."""

LATE = 1.0
"""Seconds. If the event loop was blocked for longer, what the client could have taken was not sent."""


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
        end = self.loop.time() + SEND_WITHIN
        self._deadline = self.loop.call_at(end, self._end_unless_taken, unsent(self.transport), end)

    def _end_unless_taken(self, before: int, end: float) -> None:
        """While writing is paused hardly anything is added, so what is missing now has been taken."""
        taken = before - unsent(self.transport)
        if taken >= min(LEAST_TAKEN, before / 2) or self.loop.time() > end + LATE:
            self._wait_for_reader()
        else:
            self.transport.abort()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def unsent(transport: asyncio.Transport) -> int:
    """Bytes that the client has not received, also those in the buffer of the system: it may hold megabytes, and reports to the
    event loop only when much of it is free."""
    count = transport.get_write_buffer_size()
    with suppress(OSError, AttributeError):  # closed, or not a socket
        answer = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, struct.pack("i", 0))
        count += struct.unpack("i", answer)[0]
    return count
