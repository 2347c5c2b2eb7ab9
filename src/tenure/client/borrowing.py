"""Statements in a transaction of the caller's: committed together, rolled back together."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tenure.client.door import Door
from tenure.client.enqueuer import Met, array_of, met_in
from tenure.client.refusals import explained
from tenure.store import jobs
from tenure.store.borrowed import Borrowed, borrow
from tenure.store.borrowed.identity import check_database, check_database_sync
from tenure.store.faults import Refused


async def borrow_checked(door: Door, connection: object) -> Borrowed:
    """A connection of the caller's that leads to the app's own database."""
    borrowed = borrow(connection)
    await check_database(borrowed, door.place())
    return borrowed


def borrow_checked_sync(door: Door, connection: object) -> Borrowed:
    borrowed = borrow(connection)
    check_database_sync(borrowed, door.place())
    return borrowed


async def enqueue_borrowed(door: Door, connection: object, texts: Iterable[str], words: Iterable[str]) -> Met:
    """`words` are sent to listeners when the transaction commits, each of them once."""
    place, borrowed = door.place(), await borrow_checked(door, connection)
    try:
        query = jobs.enqueue_borrowed(array_of(texts), place.channel, json.dumps(sorted(words)))
        return met_in(await borrowed.fetch(query, place.schema))
    except Refused as error:
        raise explained(error) from error


def enqueue_borrowed_sync(door: Door, connection: object, texts: Iterable[str], words: Iterable[str]) -> Met:
    place, borrowed = door.place(), borrow_checked_sync(door, connection)
    try:
        query = jobs.enqueue_borrowed(array_of(texts), place.channel, json.dumps(sorted(words)))
        return met_in(borrowed.fetch_sync(query, place.schema))
    except Refused as error:
        raise explained(error) from error
