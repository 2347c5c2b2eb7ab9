"""Django's connections in handlers: each job finds usable ones, and leaves none behind that would harm the next.

Django does this at the start and end of each request. A worker has no requests: without these hooks a connection that the server
closed would fail every job of its thread, CONN_MAX_AGE would have no effect, and a pool would not get its connections back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import cache

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.core.cache import caches
from django.db import connections, reset_queries

from tenure.worker.run.context import Context


def around_plain_handler(ctx: Context) -> Iterator[None]:
    """In the handler's own thread or process, where its connections are."""
    del ctx
    check_before_use()
    entered_before = open_blocks()  # by a test that runs the handler in its own thread
    close_unusable(entered_before)
    if settings.DEBUG:
        reset_queries()  # otherwise all queries of this thread would be kept
    try:
        yield
    finally:
        discard(open_blocks() - entered_before)
        close_unusable(entered_before)
        caches.close_all()


async def around_coroutine_handler(ctx: Context) -> AsyncIterator[None]:
    """A thread for this job alone: Django runs the synchronous parts of coroutines there. Without it, all coroutines of a process
    would share one thread and its connection."""
    del ctx
    check_before_use()
    async with ThreadSensitiveContext():
        try:
            yield
        finally:
            await sync_to_async(_close_thread)()


def _close_thread() -> None:
    """The thread ends with the job: nothing can use its connections again."""
    discard(open_blocks())
    connections.close_all()
    caches.close_all()


@cache
def check_before_use() -> None:
    """Once per process: a connection that was kept from an earlier job, or comes from a pool, is checked before a job uses it.
    The server may have closed it meanwhile."""
    for alias in connections:
        connections.settings[alias]["CONN_HEALTH_CHECKS"] = True
        connection = connections[alias]
        connection.health_check_enabled = True  # of a connection that is open already
        if alias in getattr(connection, "_connection_pools", ()):
            connection.close_pool()  # it was made without the check; the next connection makes a new one


def close_unusable(kept: set[str]) -> None:
    """As Django's `close_old_connections`, which would also close a connection inside of `atomic()`."""
    for connection in connections.all(initialized_only=True):
        if connection.alias not in kept:
            connection.close_if_unusable_or_obsolete()


def open_blocks() -> set[str]:
    """The aliases of connections inside of `atomic()`."""
    return {connection.alias for connection in connections.all(initialized_only=True) if connection.in_atomic_block}


def discard(aliases: set[str]) -> None:
    """A block that a handler has entered and never left must not swallow what the next one writes."""
    for alias in aliases:
        connections[alias].close()
        del connections[alias]
