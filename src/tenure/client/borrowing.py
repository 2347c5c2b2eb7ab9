"""Statements in a transaction of the caller's: committed together, rolled back together."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tenure.client.enqueuer import ExistingJobs, array_of, existing_in
from tenure.client.refusals import explained
from tenure.client.runtime import ClientRuntime
from tenure.store import jobs
from tenure.store.borrowed import Borrowed, borrow
from tenure.store.borrowed.identity import check_database, check_database_sync
from tenure.store.faults import Refused


async def borrow_checked(runtime: ClientRuntime, connection: object) -> Borrowed:
    """A connection of the caller's that leads to the app's own database."""
    borrowed = borrow(connection)
    await check_database(borrowed, runtime.database())
    return borrowed


def borrow_checked_sync(runtime: ClientRuntime, connection: object) -> Borrowed:
    borrowed = borrow(connection)
    check_database_sync(borrowed, runtime.database())
    return borrowed


async def enqueue_borrowed(
    runtime: ClientRuntime, connection: object, texts: Iterable[str], words: Iterable[str]
) -> ExistingJobs:
    """`words` are sent to listeners when the transaction commits, each of them once."""
    database, borrowed = runtime.database(), await borrow_checked(runtime, connection)
    try:
        query = jobs.enqueue_borrowed(array_of(texts), database.channel, json.dumps(sorted(words)))
        return existing_in(await borrowed.fetch(query, database.schema))
    except Refused as error:
        raise explained(error) from error


def enqueue_borrowed_sync(runtime: ClientRuntime, connection: object, texts: Iterable[str], words: Iterable[str]) -> ExistingJobs:
    database, borrowed = runtime.database(), borrow_checked_sync(runtime, connection)
    try:
        query = jobs.enqueue_borrowed(array_of(texts), database.channel, json.dumps(sorted(words)))
        return existing_in(borrowed.fetch_sync(query, database.schema))
    except Refused as error:
        raise explained(error) from error
