"""What a test's code has enqueued."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from tenure.app import Tenure
from tenure.client.enqueue_batches import borrow_checked, borrow_checked_sync
from tenure.client.runtime import ClientRuntime
from tenure.model.kinds import Kind
from tenure.model.system_data import SystemData
from tenure.store import testing
from tenure.store.sync_link import SyncLink
from tenure.store.testing import EnqueuedJobRow
from tenure.testing.runtimes import AnyJob, runtime_of

PATIENCE = 10.0
"""Seconds for the database."""

Arguments = Mapping[str, Any] | Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueuedJob:
    """A job that was enqueued."""

    id: UUID
    kind: str
    args: Any
    """The arguments by name, typed as the handler gets them; plain JSON if the app does not define the kind."""
    queue: str
    priority: int
    state: str
    """Empty with a `Recorder`."""
    key: str | None = None
    auth: Any = None
    meta: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    run_at: datetime | None = None
    """When it is due, if it was enqueued for later."""
    delay: float | None = None
    """Seconds. Only with a `Recorder`; PostgreSQL has made a time of it."""


def assert_enqueued(
    job: AnyJob,
    args: Arguments | None = None,
    *,
    times: int | None = None,
    queue: str | None = None,
    key: str | None = None,
    conn: object | None = None,
) -> None:
    """Fails unless the job was enqueued: with these arguments, this many times (by default once or more), in this queue.

    `args` are those to compare, by name or in order; others may have any value. `conn`: your synchronous connection or session,
    whose transaction is not committed yet. Of an async session: `await session.run_sync(lambda s: assert_enqueued(job, conn=s))`.
    The app of a Django project looks in the `atomic()` block of this thread by itself.
    """
    check_enqueued(enqueued_sync(job, conn=conn), job, args, times=times, queue=queue, key=key)


async def enqueued(owner: Tenure | AnyJob, *, conn: object | None = None) -> list[EnqueuedJob]:
    """All jobs that an app enqueued, or those of one kind, in order. With `conn`, also those that it has not committed."""
    runtime = runtime_of(owner)
    if conn is not None:
        rows = await (await borrow_checked(runtime, conn)).fetch(_query(owner), runtime.database().schema)
    elif runtime.ambient is not None and (joined := await runtime.ambient.join(lambda: enqueued_sync(owner))) is not None:
        return cast("list[EnqueuedJob]", joined.result)
    else:
        rows = await runtime.session().fetch_all(_query(owner))
    return [_of_row(runtime, row) for row in rows]


def enqueued_sync(owner: Tenure | AnyJob, *, conn: object | None = None) -> list[EnqueuedJob]:
    runtime = runtime_of(owner)
    if conn is None and runtime.ambient is not None:
        conn = runtime.ambient.connection()  # where an enqueue in this place writes
    if conn is None:
        return enqueued_committed(owner)
    rows = borrow_checked_sync(runtime, conn).fetch_sync(_query(owner), runtime.database().schema)
    return [_of_row(runtime, row) for row in rows]


def enqueued_committed(owner: Tenure | AnyJob) -> list[EnqueuedJob]:
    """As another process sees it."""
    runtime = runtime_of(owner)
    link = SyncLink(runtime.database(), "test")
    try:
        rows = link.fetch(_query(owner), deadline=time.monotonic() + PATIENCE)
    finally:
        link.close()
    return [_of_row(runtime, row) for row in rows]


def check_enqueued(
    found: Iterable[EnqueuedJob],
    job: AnyJob,
    args: Arguments | None,
    *,
    times: int | None,
    queue: str | None,
    key: str | None,
) -> None:
    """Raises AssertionError with all that was enqueued of this kind."""
    wanted = _by_name(job.kind, args)
    of_kind = [one for one in found if one.kind == job.name]
    fitting = [one for one in of_kind if _fits(one, wanted, queue, key)]
    if len(fitting) >= 1 if times is None else len(fitting) == times:
        return
    expected = "at least once" if times is None else f"{times} times"
    conditions = {"args": wanted or None, "queue": queue, "key": key}
    shown = ", ".join(f"{name}={value!r}" for name, value in conditions.items() if value is not None)
    listed = "".join(f"\n  args={one.args!r} queue={one.queue!r} key={one.key!r} state={one.state!r}" for one in of_kind)
    raise AssertionError(
        f"{job.name} was enqueued {len(fitting)} times{f' with {shown}' if shown else ''}, expected {expected}. "
        + (f"All that were enqueued:{listed}" if of_kind else "None was enqueued: if it was in a transaction, give it as conn=")
    )


def arguments_of(kind: Kind | None, text: str) -> Any:
    """Typed, by name."""
    return json.loads(text) if kind is None else kind.input.decode(text)


def _query(owner: Tenure | AnyJob) -> Any:
    return testing.find_enqueued(None if isinstance(owner, Tenure) else [owner.name])


def _of_row(runtime: ClientRuntime, row: EnqueuedJobRow) -> EnqueuedJob:
    return EnqueuedJob(
        id=row.id,
        kind=row.kind,
        args=arguments_of(runtime.kinds.get(row.kind), row.input),
        queue=row.queue,
        priority=row.priority,
        state=row.state,
        key=row.key,
        auth=None if row.auth is None else json.loads(row.auth),
        meta=None if row.meta is None else json.loads(row.meta),
        headers=SystemData.parse(row.system).headers,
        run_at=row.run_at,
    )


def _by_name(kind: Kind, args: Arguments | None) -> dict[str, Any]:
    if args is None:
        return {}
    if isinstance(args, Mapping):
        return dict(args)
    names = [parameter.name for parameter in kind.signature.parameters]
    if isinstance(args, str) or len(args) > len(names):
        raise AssertionError(f"args is {args!r}: give a mapping, or a tuple of at most {len(names)} values for {kind.name}")
    return dict(zip(names, args, strict=False))


def _fits(job: EnqueuedJob, wanted: dict[str, Any], queue: str | None, key: str | None) -> bool:
    if (queue is not None and job.queue != queue) or (key is not None and job.key != key):
        return False
    return all(name in job.args and job.args[name] == value for name, value in wanted.items())
