"""Enqueues in a transaction of the caller's: committed together, rolled back together."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tenure.client.door import Door
from tenure.client.enqueuer import Met, met_in
from tenure.client.refusals import explained
from tenure.store import jobs
from tenure.store.borrowed import borrow
from tenure.store.faults import Refused


async def enqueue_borrowed(door: Door, connection: object, texts: Iterable[str], words: Iterable[str]) -> Met:
    place, borrowed = door.place(), borrow(connection)
    try:
        rows = await borrowed.fetch(jobs.enqueue(_array(texts), borrowed=True), place.schema)
        await borrowed.fetch(jobs.notify(place.channel, json.dumps(list(words))), place.schema)
    except Refused as error:
        raise explained(error) from error
    return met_in(rows)


def enqueue_borrowed_sync(door: Door, connection: object, texts: Iterable[str], words: Iterable[str]) -> Met:
    place, borrowed = door.place(), borrow(connection)
    try:
        rows = borrowed.fetch_sync(jobs.enqueue(_array(texts), borrowed=True), place.schema)
        borrowed.fetch_sync(jobs.notify(place.channel, json.dumps(list(words))), place.schema)
    except Refused as error:
        raise explained(error) from error
    return met_in(rows)


def _array(texts: Iterable[str]) -> str:
    return "[" + ",".join(texts) + "]"
