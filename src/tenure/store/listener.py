"""One LISTEN connection a process: hears, proves that it hears, and comes back when the line breaks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import AsyncConnection

from tenure.model.errors import StoreUnavailable
from tenure.store.link import connect
from tenure.store.place import Place
from tenure.store.statements import quoted

log = logging.getLogger("tenure")

SILENCE = 60.0  # after so many quiet seconds the line is asked whether it still stands; TCP finds out sooner, where it can
ANSWER = 5.0
ECHO = 2.0  # how long the self-test waits for its own words


class Listener:
    """Calls `heard(payload)` for each notification, and `heard("")` whenever something may have been missed.

    A transaction pooler accepts LISTEN and delivers nothing. So once connected, `say` (another connection) sends a word
    that must come back; if it does not, that is reported once and everybody lives by polling.
    """

    def __init__(self, place: Place, heard: Callable[[str], None], say: Callable[[str], Awaitable[None]]) -> None:
        self._place = place
        self._heard = heard
        self._say = say
        self._password = f"self {uuid4()}"
        self._echo = asyncio.Event()
        self.deaf = False

    async def turn(self) -> float:
        """Listens until the line breaks. A turn of a `Beat`, which waits and connects anew."""
        try:
            async with await connect(self._place.for_listening, "listen") as connection:
                await self._listen(connection)
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise StoreUnavailable(f"the LISTEN connection broke: {str(error).strip() or type(error).__name__}") from error
        return 0.0

    async def _listen(self, connection: AsyncConnection[Any]) -> None:
        await connection.execute(f"listen {quoted(self._place.channel)}")
        self._echo.clear()
        test = asyncio.create_task(self._test())
        try:
            self._heard("")
            while True:
                async for note in connection.notifies(timeout=SILENCE):
                    self._take(note.payload)
                async with asyncio.timeout(ANSWER):
                    await connection.execute("select 1")
        finally:
            test.cancel()

    def _take(self, payload: str) -> None:
        if payload == self._password:
            self._echo.set()
        elif not payload.startswith("self "):
            self._heard(payload)

    async def _test(self) -> None:
        await self._say(self._password)
        try:
            async with asyncio.timeout(ECHO):
                await self._echo.wait()
        except TimeoutError:
            if not self.deaf:
                log.warning(
                    "LISTEN delivers nothing (a transaction pooler such as PgBouncer?): polling instead, which is slower; "
                    "give a direct connection in `listen_dsn` to be woken at once"
                )
            self.deaf = True
        else:
            self.deaf = False
