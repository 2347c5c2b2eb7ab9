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
from tenure.model.wakeup import Wakeup
from tenure.store import blockers, jobs

CHUNK = 1000
"""Members that `app.map()` adds in one transaction."""

CHUNK_BYTES = 16 * 1024 * 1024
"""A transaction also ends when its inputs have this many characters as JSON: PostgreSQL reads no JSON of more than 256 MB."""


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
    growing = await GrowingGroup.open(runtime, key)
    if growing.is_open:
        for chunk in growing.chunks(job, items):
            await growing.add(chunk)
        await growing.close()
    return growing.group


def map_items_sync(runtime: ClientRuntime, job: Any, items: Iterable[Any], key: str | None) -> Group[Any]:
    """The items are read in the caller's thread: they may come from a database or from other synchronous calls of Tenure."""
    run = runtime.portal.run
    growing = run(GrowingGroup.open(runtime, key))
    if growing.is_open:
        for chunk in growing.chunks(job, items):
            run(growing.add(chunk))
        run(growing.close())
    return growing.group


class GrowingGroup:
    """A group while `app.map()` adds members to it."""

    def __init__(self, runtime: ClientRuntime, group: Group[Any], *, added: int = 0, is_open: bool = True) -> None:
        self.group = group
        self.is_open = is_open
        self._runtime = runtime
        self._added = added

    @classmethod
    async def open(cls, runtime: ClientRuntime, key: str | None) -> GrowingGroup:
        handle = await send_call(runtime, Options(), open_group_call(key))
        group: Group[Any] = Group(handle.id, runtime, existed=handle.existed)
        if not handle.existed:
            return cls(runtime, group)
        progress = await group.progress()
        # The call that began it was interrupted: what it has added is there.
        return cls(runtime, group, added=progress.total, is_open=progress.open)

    def chunks(self, job: Any, items: Iterable[Any]) -> Iterator[list[Call[Any]]]:
        """Calls for the items that are not members yet."""
        marking, source = Marking(), iter(items)
        for _ in islice(source, self._added):
            pass
        chunk: list[Call[Any]] = []
        size = 0
        for item in source:
            call = marking.mark(job.call(item))
            chunk.append(call)
            size += len(call.input)
            if len(chunk) == CHUNK or size >= CHUNK_BYTES:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    async def add(self, chunk: list[Call[Any]]) -> None:
        with within_hooks(self._runtime, chunk) as calls:
            await _add(self._runtime, self.group, calls, self._added)
        self._added += len(chunk)

    async def close(self) -> None:
        session = self._runtime.session()
        await session.reader(self._runtime.client_timeout())(blockers.close_group(str(self.group.id)))
        session.notify(Wakeup.chain_ended())


async def _add(runtime: ClientRuntime, group: Group[Any], chunk: Sequence[Call[Any]], expected: int) -> None:
    """The jobs and their membership are written together. After a lost answer, both are written again, once."""
    session, text = runtime.session(), to_json(chunk)
    deadline = time.monotonic() + runtime.client_timeout()

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
