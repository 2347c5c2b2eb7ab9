"""Makes groups: `app.gather()` in one transaction, `app.map()` in many."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from tenure.client.calls import Call, to_json
from tenure.client.options import HasId, Options, call_options
from tenure.client.reading import repeat_while_away
from tenure.client.runtime import ClientRuntime
from tenure.client.sending import send_call, send_many, send_many_sync, within_hooks
from tenure.flow.group_members import Marking, Members, group_call, members_of, open_group_call
from tenure.flow.groups import Group
from tenure.model.errors import NotPossible, StoreUnavailable
from tenure.store import blockers, jobs
from tenure.store.wakeup import Wakeup

CHUNK = 1000
"""Members that `app.map()` adds in one transaction."""


async def gather(runtime: ClientRuntime, given: Iterable[Call[Any] | HasId], conn: object | None) -> Group[Any]:
    members, options = members_of(given), call_options("", "gather()", conn=conn)
    group = group_call(members.ids)
    await send_many(runtime, _all(members, group), options)
    return Group(group.id, runtime)


def gather_sync(runtime: ClientRuntime, given: Iterable[Call[Any] | HasId], conn: object | None) -> Group[Any]:
    members, options = members_of(given), call_options("", "gather()", conn=conn)
    group = group_call(members.ids)
    send_many_sync(runtime, _all(members, group), options)
    return Group(group.id, runtime)


def _all(members: Members, group: Call[Any]) -> list[Call[Any]]:
    return [*members.calls, group]  # the group is last: it can only wait for jobs that come before it


async def map_items(runtime: ClientRuntime, job: Any, items: Iterable[Any], key: str | None) -> Group[Any]:
    """An open group gets its members chunk by chunk, each in a transaction, and is closed after the last."""
    handle = await send_call(runtime, Options(), open_group_call(key))
    group: Group[Any] = Group(handle.id, runtime, existed=handle.existed)
    added = 0
    if handle.existed:
        progress = await group.progress()
        if not progress.open:
            return group
        added = progress.total  # the call that began it was interrupted: what it has added is there
    marking, source = Marking(), iter(items)
    for _ in islice(source, added):
        pass
    for chunk in _chunks(marking.mark(job.call(item)) for item in source):
        with within_hooks(runtime, chunk) as calls:
            await _add(runtime, group, calls, added)
        added += len(chunk)
    session = runtime.session()
    await session.reader(runtime.patience())(blockers.close_group(str(group.id)))
    session.notify(Wakeup.chain_ended())
    return group


def _chunks(calls: Iterator[Call[Any]]) -> Iterator[list[Call[Any]]]:
    while chunk := list(islice(calls, CHUNK)):
        yield chunk


async def _add(runtime: ClientRuntime, group: Group[Any], chunk: Sequence[Call[Any]], expected: int) -> None:
    """The jobs and their membership are written together. After a lost answer, both are written again, once."""
    session, text = runtime.session(), to_json(chunk)
    deadline = time.monotonic() + runtime.patience()

    async def send(again: bool) -> None:
        async with session.transaction() as run:
            await run(jobs.enqueue(text, again=again))
            if not await run(blockers.add_members(str(group.id), [call.id for call in chunk], expected=expected)):
                raise NotPossible(
                    [group.id], "is not open any more, was canceled, or another call adds members to it: use another key="
                )

    def failed(error: StoreUnavailable, pause: float) -> None:
        if time.monotonic() + pause > deadline:
            raise error

    await repeat_while_away(send, failed)
    for wakeup in chunk[0].fields.wakeups:
        session.notify(wakeup)
