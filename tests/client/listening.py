"""What a client asks and says."""

from __future__ import annotations

import asyncio

from tenure.client.client import Client
from tests.store.database import Database


async def heard(other: Database, count: int) -> set[str]:
    """So many words, said since this connection began to listen."""
    return {
        note.payload for note in await asyncio.to_thread(lambda: list(other.connection.notifies(timeout=5, stop_after=count)))
    }


def asks(client: Client) -> list[str]:
    """The statements that the client sends from now on."""
    session = client._runtime.session()
    fetch, asked = session.fetch, []

    async def noting(query):
        asked.append(query.name)
        return await fetch(query)

    session.fetch = noting
    return asked
