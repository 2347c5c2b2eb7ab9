"""Enqueueing calls: one or many, on a connection of ours or in a transaction of the caller's, with or without an event loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from tenure.client.calls import Call
from tenure.client.handle import Handle
from tenure.client.options import Options
from tenure.client.runtime import ClientRuntime

if TYPE_CHECKING:
    from tenure.client.enqueuer import ExistingJobs

R = TypeVar("R")

CHUNK = 500  # jobs a statement: small enough for the socket to take at once


async def enqueue_call(runtime: ClientRuntime, options: Options, call: Call[R]) -> Handle[R]:
    if options.conn is not None:
        return call.handle(runtime, await _borrowed(runtime, options, [call]))
    within = runtime.patience() if options.within is None else options.within
    return call.handle(runtime, await runtime.session().enqueue([call.text], call.words, within))


def enqueue_call_sync(runtime: ClientRuntime, options: Options, call: Call[R]) -> Handle[R]:
    if options.conn is not None:
        return call.handle(runtime, _borrowed_sync(runtime, options, [call]))
    within = runtime.patience() if options.within is None else options.within
    return call.handle(runtime, runtime.direct().enqueue([call.text], call.words, within))


async def enqueue_many(runtime: ClientRuntime, calls: Iterable[Call[Any]], options: Options) -> list[Handle[Any]]:
    """All of them, or none, in one transaction. A generator is drawn from while earlier jobs are being written."""
    if options.conn is not None:
        listed = list(calls)
        met = await _borrowed(runtime, options, listed)
        return [call.handle(runtime, met) for call in listed]
    drawn: list[Call[Any]] = []
    words: set[str] = set()

    def chunks() -> Iterator[str]:
        source = iter(calls)
        while chunk := list(islice(source, CHUNK)):
            drawn.extend(chunk)
            words.update(*(call.words for call in chunk))
            yield "[" + ",".join([call.text for call in chunk]) + "]"

    within = runtime.patience() if options.within is None else options.within
    met = await runtime.session().enqueue_bulk(chunks(), words, within)
    return [call.handle(runtime, met) for call in drawn]


def enqueue_many_sync(runtime: ClientRuntime, calls: Iterable[Call[Any]], options: Options) -> list[Handle[Any]]:
    if options.conn is not None:
        listed = list(calls)
        met = _borrowed_sync(runtime, options, listed)
        return [call.handle(runtime, met) for call in listed]
    source = iter(calls)
    first = list(islice(source, CHUNK + 1))
    if len(first) > CHUNK:
        return runtime.portal.run(enqueue_many(runtime, _chained(first, source), options))
    within = runtime.patience() if options.within is None else options.within
    words = frozenset[str]().union(*(call.words for call in first))
    met = runtime.direct().enqueue([call.text for call in first], words, within) if first else {}
    return [call.handle(runtime, met) for call in first]


def _chained(first: list[Call[Any]], rest: Iterator[Call[Any]]) -> Iterator[Call[Any]]:
    yield from first
    yield from rest


async def _borrowed(runtime: ClientRuntime, options: Options, calls: list[Call[Any]]) -> ExistingJobs:
    from tenure.client.borrowing import enqueue_borrowed  # noqa: PLC0415 - brings the driver

    return await enqueue_borrowed(runtime, options.conn, [call.text for call in calls], _words(runtime, options, calls))


def _borrowed_sync(runtime: ClientRuntime, options: Options, calls: list[Call[Any]]) -> ExistingJobs:
    from tenure.client.borrowing import enqueue_borrowed_sync  # noqa: PLC0415 - brings the driver

    return enqueue_borrowed_sync(runtime, options.conn, [call.text for call in calls], _words(runtime, options, calls))


def _words(runtime: ClientRuntime, options: Options, calls: list[Call[Any]]) -> frozenset[str]:
    """Whom to notify when the caller's transaction commits."""
    wanted = runtime.notifies_in_transactions() if options.notify is None else options.notify
    return frozenset[str]().union(*(call.words for call in calls)) if wanted else frozenset()
