"""Enqueues calls: one or many, on our own connection or in the caller's transaction, with or without an event loop."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tenure.client.ambient import Joined
from tenure.client.calls import Call, to_json
from tenure.client.handle import Handle
from tenure.client.options import Options
from tenure.client.runtime import ClientRuntime
from tenure.model.errors import ConfigError
from tenure.model.wakeup import Wakeup

if TYPE_CHECKING:
    from tenure.client.enqueue_batches import ExistingJobs

log = logging.getLogger("tenure")

R = TypeVar("R")

CHUNK = 500  # jobs in a statement: few enough for the socket to take at once


async def enqueue_call(runtime: ClientRuntime, options: Options, call: Call[R]) -> Handle[R]:
    if runtime.interceptors:
        return (await runtime.interceptors[-1].enqueue([call], options))[0]
    if runtime.ambient is not None and (joined := await _joined(runtime, options, enqueue_call_sync, call)) is not None:
        return cast("Handle[R]", joined.result)
    if options.conn is not None:
        return _handle(runtime, call, await _borrowed(runtime, options, [call]))
    return _handle(runtime, call, await runtime.session().enqueue([call], call.fields.wakeups, _within(runtime, options)))


def enqueue_call_sync(runtime: ClientRuntime, options: Options, call: Call[R]) -> Handle[R]:
    if runtime.interceptors:
        return runtime.interceptors[-1].enqueue_sync([call], options)[0]
    options = _in_ambient_transaction(runtime, options)
    if options.conn is not None:
        return _handle(runtime, call, _borrowed_sync(runtime, options, [call]))
    return _handle(runtime, call, runtime.direct().enqueue([call], call.fields.wakeups, _within(runtime, options)))


async def enqueue_many(runtime: ClientRuntime, calls: Iterable[Call[Any]], options: Options) -> list[Handle[Any]]:
    """Writes all jobs in one transaction, or none. A generator is advanced while earlier jobs are being written."""
    if runtime.interceptors:
        return await runtime.interceptors[-1].enqueue(list(_several(calls)), options)
    if runtime.ambient is not None and (joined := await _joined(runtime, options, _many_sync, calls)) is not None:
        return cast("list[Handle[Any]]", joined.result)
    if options.conn is not None:
        listed = list(_several(calls))
        return _handles(runtime, listed, await _borrowed(runtime, options, listed))
    drawn: list[Call[Any]] = []
    wakeups: set[Wakeup] = set()

    def chunks() -> Iterator[str]:
        source = iter(_several(calls))
        while chunk := list(islice(source, CHUNK)):
            drawn.extend(chunk)
            wakeups.update(_wakeups(chunk))
            yield to_json(chunk)

    return _handles(runtime, drawn, await runtime.session().enqueue_bulk(chunks(), wakeups, _within(runtime, options)))


def enqueue_many_sync(runtime: ClientRuntime, calls: Iterable[Call[Any]], options: Options) -> list[Handle[Any]]:
    if runtime.interceptors:
        return runtime.interceptors[-1].enqueue_sync(list(_several(calls)), options)
    options = _in_ambient_transaction(runtime, options)
    if options.conn is not None:
        listed = list(_several(calls))
        return _handles(runtime, listed, _borrowed_sync(runtime, options, listed))
    source = iter(_several(calls))
    first = list(islice(source, CHUNK + 1))
    if len(first) > CHUNK:
        return runtime.portal.run(enqueue_many(runtime, chain(first, source), options))
    existing = runtime.direct().enqueue(first, _wakeups(first), _within(runtime, options)) if first else {}
    return _handles(runtime, first, existing)


def _many_sync(runtime: ClientRuntime, options: Options, calls: Iterable[Call[Any]]) -> list[Handle[Any]]:
    return enqueue_many_sync(runtime, calls, options)


def _in_ambient_transaction(runtime: ClientRuntime, options: Options) -> Options:
    """With the connection of the transaction that is open in this thread, if the call names none."""
    if runtime.ambient is None or options.conn is not None or not options.in_transaction:
        return options
    connection = runtime.ambient.connection()
    return options if connection is None else replace(options, conn=connection)


async def _joined(runtime: ClientRuntime, options: Options, enqueue: Callable[..., Any], what: Any) -> Joined | None:
    if runtime.ambient is None or options.conn is not None or not options.in_transaction:
        return None
    return await runtime.ambient.join(partial(enqueue, runtime, options, what))


def _within(runtime: ClientRuntime, options: Options) -> float:
    return runtime.client_timeout() if options.within is None else options.within


def _handles(runtime: ClientRuntime, calls: list[Call[Any]], existing: ExistingJobs) -> list[Handle[Any]]:
    if not existing and not _is_event_wanted(runtime):
        return [Handle(call.id, call.fields.kind, runtime) for call in calls]
    return [_handle(runtime, call, existing) for call in calls]


def _handle(runtime: ClientRuntime, call: Call[R], existing: ExistingJobs) -> Handle[R]:
    """For the call's own job, or for the earlier job that has its key."""
    if not existing or str(call.id) not in existing:
        if _is_event_wanted(runtime):
            from tenure.model.events import JobEnqueued  # noqa: PLC0415 - its subscriber has imported it

            runtime.events.emit(JobEnqueued(job_id=call.id, kind=call.kind))
        return Handle(call.id, call.kind, runtime)
    job_id, differs = existing[str(call.id)]
    if differs:
        log.warning("job with the same key has different input", extra={"job_id": str(job_id), "kind": call.kind})
    return Handle(job_id, call.kind, runtime, existed=True, same_input=not differs)


def _is_event_wanted(runtime: ClientRuntime) -> bool:
    if not runtime.events.has_subscribers:
        return False
    from tenure.model.events import JobEnqueued  # noqa: PLC0415 - most processes have no subscriber, and do not import it

    return runtime.events.wants(JobEnqueued)


async def _borrowed(runtime: ClientRuntime, options: Options, calls: list[Call[Any]]) -> ExistingJobs:
    from tenure.client.enqueue_batches import enqueue_borrowed  # noqa: PLC0415 - imports the driver

    return await enqueue_borrowed(runtime, options.conn, calls, _wakeups_at_commit(runtime, options, calls))


def _borrowed_sync(runtime: ClientRuntime, options: Options, calls: list[Call[Any]]) -> ExistingJobs:
    from tenure.client.enqueue_batches import enqueue_borrowed_sync  # noqa: PLC0415 - imports the driver

    return enqueue_borrowed_sync(runtime, options.conn, calls, _wakeups_at_commit(runtime, options, calls))


def _wakeups_at_commit(runtime: ClientRuntime, options: Options, calls: list[Call[Any]]) -> frozenset[Wakeup]:
    """What listeners receive when the caller's transaction commits."""
    notify = runtime.notifies_in_transactions() if options.notify is None else options.notify
    return _wakeups(calls) if notify else frozenset()


def _wakeups(calls: list[Call[Any]]) -> frozenset[Wakeup]:
    try:
        if len(calls) == 1:
            return calls[0].fields.wakeups
        return frozenset[Wakeup]().union(*(call.fields.wakeups for call in calls))
    except AttributeError:
        wrong = next(call for call in calls if not isinstance(call, Call))
        if inspect.iscoroutine(wrong):
            wrong.close()
        raise ConfigError(f"enqueue_many() got {wrong!r:.100}, which is not a call: write `job.call(...)` for each job") from None


def _several(calls: Iterable[Call[Any]]) -> Iterable[Call[Any]]:
    if isinstance(calls, Call):  # a tuple, so it could be iterated
        raise ConfigError("enqueue_many() got a single call: give a list of calls, or use job.enqueue(...)")
    return calls
