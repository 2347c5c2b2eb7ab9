"""What a viewer is still to be sent: at most one message for each topic, the newest."""

from __future__ import annotations

import asyncio


class Outbox:
    """Bounded by the number of topics, however slowly its reader reads."""

    def __init__(self) -> None:
        self._messages: dict[str, str] = {}
        self._size = 0
        """Of the messages and their topics, in characters."""
        self._filled = asyncio.Event()
        self._taken = asyncio.Event()
        self.closed = False

    def put(self, topic: str, text: str) -> None:
        """A newer message takes the place of the one before: otherwise a slow reader would never get topics that change often."""
        before = self._messages.get(topic)
        self._size += len(text) + (len(topic) if before is None else -len(before))
        self._messages[topic] = text
        self._filled.set()

    def drop(self, topic: str) -> None:
        self._remove(topic)
        self._taken.set()

    def close(self) -> None:
        """The reader ends after what is left."""
        self.closed = True
        self._filled.set()
        self._taken.set()

    async def room(self, most: int, most_characters: int) -> None:
        """Returns when no more messages and characters than these are left. Refusals are about topics that are not followed, so
        they are bounded by this alone."""
        while (len(self._messages) > most or self._size > most_characters) and not self.closed:
            self._taken.clear()
            await self._taken.wait()

    async def take(self) -> str | None:
        """The oldest message. None: there will be no more."""
        while not self._messages:
            if self.closed:
                return None
            self._filled.clear()
            await self._filled.wait()
        topic = next(iter(self._messages))
        self._taken.set()
        return self._remove(topic)

    def _remove(self, topic: str) -> str:
        text = self._messages.pop(topic, None)
        if text is None:
            return ""
        self._size -= len(topic) + len(text)
        return text
