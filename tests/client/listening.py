"""The statements that a client sends, and the notifications that it causes."""

from __future__ import annotations

import asyncio

from tenure.client.client import Client
from tests.store.database import Database


async def notified(other: Database, count: int) -> set[str]:
    """The payloads of the first `count` notifications since this connection began to listen."""
    return {
        note.payload for note in await asyncio.to_thread(lambda: list(other.connection.notifies(timeout=60, stop_after=count)))
    }


def sent_statements(client: Client) -> list[str]:
    """Collects the names of the statements that the client sends from now on."""
    session = client._runtime.session()
    fetch, asked = session.fetch, []

    async def noting(query):
        asked.append(query.name)
        return await fetch(query)

    session.fetch = noting
    return asked
