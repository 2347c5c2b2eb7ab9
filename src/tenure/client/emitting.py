"""Sends events to workflows: on our own connection, or in the caller's transaction."""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from uuid import UUID

from tenure.client.calls import this_process
from tenure.client.runtime import ClientRuntime
from tenure.model.codec import OutputCodec
from tenure.model.errors import ConfigError, JobNotFound, NotPossible
from tenure.model.names import check_name, shown
from tenure.model.options import check_option
from tenure.model.payloads import Json, with_members
from tenure.model.wakeup import Wakeup
from tenure.store import events, jobs, queues

LONGEST_KEY = 500  # bytes

SIGNALED_TOO_LATE = "is over: send signals to live workflows only"


def event_key(given: str | int | UUID | None) -> str:
    """As it is stored; empty for an event without a key."""
    if given is None:
        return ""
    if isinstance(given, bool) or not isinstance(given, str | int | UUID):
        raise ConfigError(f"the key of an event is {shown(given)}: give a text, a number or a UUID", option="key")
    text = str(given)
    if not text or len(text.encode("utf-8", "replace")) > LONGEST_KEY:
        raise ConfigError(f"the key of an event is {shown(given)}: give a text of 1 to {LONGEST_KEY} bytes", option="key")
    return text


def payload_json(event: str, payload: Any) -> Json:
    return OutputCodec(Any, kind=f"event {event}").encode(payload).decode()


def event_json(event: str, payload: Any, key: str | int | UUID | None) -> Json:
    """The argument of `tenure.emit()`."""
    head = {"name": _checked_name(event, what="the name of an event"), "key": event_key(key), "by": this_process().by}
    return f"[{with_members(json.dumps(head), payload=payload_json(event, payload))}]"


async def emit(runtime: ClientRuntime, event: str, payload: Any, key: str | int | UUID | None, conn: object | None) -> None:
    text = event_json(event, payload, key)
    if conn is None:
        session = runtime.session()
        await session.fetch(events.emit(text))
        session.notify(Wakeup.event_sent())
        return
    from tenure.client.enqueue_batches import borrow_checked  # noqa: PLC0415 - imports the driver

    database, borrowed = runtime.database(), await borrow_checked(runtime, conn)
    await borrowed.fetch(events.emit(text), database.schema)
    if runtime.notifies_in_transactions():
        await borrowed.fetch(queues.notify(database.channel, [Wakeup.event_sent()]), database.schema)


def emit_sync(runtime: ClientRuntime, event: str, payload: Any, key: str | int | UUID | None, conn: object | None) -> None:
    if conn is None:
        runtime.portal.run(emit(runtime, event, payload, key, None))
        return
    from tenure.client.enqueue_batches import borrow_checked_sync  # noqa: PLC0415 - imports the driver

    text, database, borrowed = event_json(event, payload, key), runtime.database(), borrow_checked_sync(runtime, conn)
    borrowed.fetch_sync(events.emit(text), database.schema)
    if runtime.notifies_in_transactions():
        borrowed.fetch_sync(queues.notify(database.channel, [Wakeup.event_sent()]), database.schema)


async def signal_job(runtime: ClientRuntime, job_id: UUID, name: str, payload: Any, by: str | None) -> None:
    if await send_signal(runtime, job_id, name, payload, by):
        return
    if not await runtime.session().fetch(jobs.find(str(job_id))):
        raise JobNotFound(job_id)
    raise NotPossible([job_id], SIGNALED_TOO_LATE)


async def send_signal(
    runtime: ClientRuntime, job_id: UUID, name: str, payload: Any, by: str | None, *, link: UUID | None = None
) -> bool:
    """Whether it was sent: the chain of the job has a live link; with `link`, this very one."""
    session, text = runtime.session(), payload_json(name, payload)
    name, expected = _checked_name(name, what="the name of a signal"), None if link is None else str(link)
    [sent] = await session.fetch(events.signal(str(job_id), name, text, by or this_process().by, link=expected))
    if sent:
        session.notify(Wakeup.event_sent())
    return sent


def _checked_name(name: str, what: str) -> str:
    return check_option("name", partial(check_name, what=what), name)
