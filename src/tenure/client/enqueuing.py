"""Enqueueing calls: one or many, on a connection of ours or in a transaction of the caller's, with or without an event loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from tenure.client.calls import Call
from tenure.client.door import Door
from tenure.client.handle import Handle
from tenure.client.options import Options

if TYPE_CHECKING:
    from tenure.client.enqueuer import Met

R = TypeVar("R")

CHUNK = 500  # jobs a statement: small enough for the socket to take at once


async def enqueue_call(door: Door, options: Options, call: Call[R]) -> Handle[R]:
    if options.conn is not None:
        return call.handle(door, await _borrowed(door, options, [call]))
    within = door.patience() if options.within is None else options.within
    return call.handle(door, await door.session().enqueue([call.text], call.words, within))


def enqueue_call_sync(door: Door, options: Options, call: Call[R]) -> Handle[R]:
    if options.conn is not None:
        return call.handle(door, _borrowed_sync(door, options, [call]))
    within = door.patience() if options.within is None else options.within
    return call.handle(door, door.direct().enqueue([call.text], call.words, within))


async def enqueue_many(door: Door, calls: Iterable[Call[Any]], options: Options) -> list[Handle[Any]]:
    """All of them, or none, in one transaction. A generator is drawn from while earlier jobs are being written."""
    if options.conn is not None:
        listed = list(calls)
        met = await _borrowed(door, options, listed)
        return [call.handle(door, met) for call in listed]
    drawn: list[Call[Any]] = []
    words: set[str] = set()

    def chunks() -> Iterator[str]:
        source = iter(calls)
        while chunk := list(islice(source, CHUNK)):
            drawn.extend(chunk)
            words.update(*(call.words for call in chunk))
            yield "[" + ",".join([call.text for call in chunk]) + "]"

    within = door.patience() if options.within is None else options.within
    met = await door.session().enqueue_bulk(chunks(), words, within)
    return [call.handle(door, met) for call in drawn]


def enqueue_many_sync(door: Door, calls: Iterable[Call[Any]], options: Options) -> list[Handle[Any]]:
    if options.conn is not None:
        listed = list(calls)
        met = _borrowed_sync(door, options, listed)
        return [call.handle(door, met) for call in listed]
    source = iter(calls)
    first = list(islice(source, CHUNK + 1))
    if len(first) > CHUNK:
        return door.portal.run(enqueue_many(door, _chained(first, source), options))
    within = door.patience() if options.within is None else options.within
    words = frozenset[str]().union(*(call.words for call in first))
    met = door.direct().enqueue([call.text for call in first], words, within) if first else {}
    return [call.handle(door, met) for call in first]


def _chained(first: list[Call[Any]], rest: Iterator[Call[Any]]) -> Iterator[Call[Any]]:
    yield from first
    yield from rest


async def _borrowed(door: Door, options: Options, calls: list[Call[Any]]) -> Met:
    from tenure.client.borrowing import enqueue_borrowed  # noqa: PLC0415 - brings the driver

    return await enqueue_borrowed(door, options.conn, [call.text for call in calls], _words(door, options, calls))


def _borrowed_sync(door: Door, options: Options, calls: list[Call[Any]]) -> Met:
    from tenure.client.borrowing import enqueue_borrowed_sync  # noqa: PLC0415 - brings the driver

    return enqueue_borrowed_sync(door, options.conn, [call.text for call in calls], _words(door, options, calls))


def _words(door: Door, options: Options, calls: list[Call[Any]]) -> frozenset[str]:
    """Whom to notify when the caller's transaction commits."""
    wanted = door.notifies_in_transactions() if options.notify is None else options.notify
    return frozenset[str]().union(*(call.words for call in calls)) if wanted else frozenset()
