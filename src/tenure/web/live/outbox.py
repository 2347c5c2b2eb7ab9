"""What a viewer is still to be sent: at most one message for each topic, the newest."""

from __future__ import annotations

import asyncio


class Outbox:
    """Bounded by the number of topics, however slowly its reader reads."""

    def __init__(self) -> None:
        self._messages: dict[str, str] = {}
        self._filled = asyncio.Event()
        self.closed = False

    def put(self, topic: str, text: str) -> None:
        self._messages[topic] = text
        self._filled.set()

    def drop(self, topic: str) -> None:
        self._messages.pop(topic, None)

    def close(self) -> None:
        """The reader ends after what is left."""
        self.closed = True
        self._filled.set()

    async def take(self) -> str | None:
        """The oldest message. None: there will be no more."""
        while not self._messages:
            if self.closed:
                return None
            self._filled.clear()
            await self._filled.wait()
        topic = next(iter(self._messages))
        return self._messages.pop(topic)
