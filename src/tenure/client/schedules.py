"""`app.schedules`: to create, change, pause and list schedules."""

from __future__ import annotations

import builtins
from dataclasses import fields
from datetime import datetime
from typing import Any
from uuid import UUID

from tenure.client.cancel_delete import cleaned
from tenure.client.handle import Handle
from tenure.client.job import Job
from tenure.client.named import UnknownJob
from tenure.client.portal import sync_version
from tenure.client.runtime import ClientRuntime
from tenure.client.schedule_status import ScheduleStatus, Tick
from tenure.client.unchanged import UNCHANGED
from tenure.model.declared import checked_input, schedule_of
from tenure.model.durations import Duration
from tenure.model.errors import ConfigError, ScheduleConflict, ScheduleNotFound
from tenure.model.ids import uuid7
from tenure.model.kinds import Kind
from tenure.model.payloads import plain_json
from tenure.model.schedules import CatchUp, Overlap, Schedule, schedule
from tenure.model.wakeup import Wakeup
from tenure.store import schedules as store
from tenure.store.query import Query, T

MOST_TRIES = 10
LARGEST_PAGE = 1000


class Schedules:
    """Every method has a sync version for code without an event loop: `create_sync`, `list_sync`, ..."""

    def __init__(self, runtime: ClientRuntime) -> None:
        self._runtime = runtime

    # Changing

    async def create(
        self,
        name: str,
        job: Job[Any, Any, Any, Any] | UnknownJob | str,
        cron: str | None = None,
        *,
        every: Duration | None = None,
        timezone: str | None = None,
        input: Any = None,  # noqa: A002 - the term used everywhere
        queue: str | None = None,
        priority: int | str | None = None,
        overlap: Overlap = "skip",
        catch_up: CatchUp = "one",
        catch_up_limit: int | None = None,
        jitter: Duration = 0,
        expires: Duration | None = None,
        paused: bool = False,
        by: str | None = None,
    ) -> ScheduleStatus:
        """Creates a schedule. `job` is a job, or the name of a kind. Without a definition in this app, the input is not checked,
        and queue, priority and attempts are the defaults of all jobs unless they are given.

        Raises `ScheduleConflict` if a schedule has that name.
        """
        options = {
            "cron": cron,
            "every": every,
            "timezone": timezone,
            "queue": queue,
            "priority": priority,
            "overlap": overlap,
            "catch_up": catch_up,
            "catch_up_limit": catch_up_limit,
            "jitter": jitter,
            "expires": expires,
        }
        made = _made(self._kind(job), name, input, options)
        if not await self._runtime.session().fetch(store.create(made, paused=paused, by=cleaned(by))):
            raise ScheduleConflict(name, "exists already: change or delete it, or choose another name")
        self._notify_leader()
        return await self._found(name)

    async def change(
        self,
        name: str,
        *,
        cron: Any = UNCHANGED,
        every: Any = UNCHANGED,
        timezone: Any = UNCHANGED,
        input: Any = UNCHANGED,  # noqa: A002 - the term used everywhere
        queue: Any = UNCHANGED,
        priority: Any = UNCHANGED,
        overlap: Any = UNCHANGED,
        catch_up: Any = UNCHANGED,
        catch_up_limit: Any = UNCHANGED,
        jitter: Any = UNCHANGED,
        expires: Any = UNCHANGED,
        by: str | None = None,
    ) -> ScheduleStatus:
        """Changes the given fields. `cron` replaces `every`, and the reverse.

        Raises `ScheduleConflict` for a schedule that code declares: change it there.
        """
        given = {
            "cron": cron,
            "every": every,
            "timezone": timezone,
            "input": input,
            "queue": queue,
            "priority": priority,
            "overlap": overlap,
            "catch_up": catch_up,
            "catch_up_limit": catch_up_limit,
            "jitter": jitter,
            "expires": expires,
        }
        wanted = {option: value for option, value in given.items() if value is not UNCHANGED}
        for _ in range(MOST_TRIES):
            found = await self._found(name)
            if found.owner is not None:
                raise ScheduleConflict(name, f"is declared by the code of {found.owner}: change it there, or pause it")
            changed = self._changed(found.definition, wanted)
            if changed == found.definition:
                return found
            if await self._runtime.session().fetch(store.change(changed, changed_at=found.changed_at, by=cleaned(by))):
                self._notify_leader()
                return await self._found(name)
        raise ScheduleConflict(name, "is being changed by another process: try again")

    async def pause(self, name: str, *, reason: str | None = None, by: str | None = None) -> None:
        """Plans no more times until it is resumed. Its jobs continue."""
        if not await self._runtime.session().fetch(store.pause(name, reason=cleaned(reason), by=cleaned(by))):
            raise ScheduleNotFound(name)

    async def resume(self, name: str) -> bool:
        """Continues from now on; times that passed while it was paused are left out. False: it was not paused."""
        rows = await self._runtime.session().fetch(store.resume(name))
        if not rows:
            raise ScheduleNotFound(name)
        self._notify_leader()
        return rows[0]

    async def run_now(self, name: str, *, input: Any = UNCHANGED, by: str | None = None) -> Handle[Any]:  # noqa: A002
        """Enqueues its job at once, even if the schedule is paused or an earlier job is live."""
        text = None
        if input is not UNCHANGED:
            kind = self._kind((await self._found(name)).kind)
            text = plain_json(checked_input(kind, input) if isinstance(kind, Kind) else input, what="its input")
        job_id: UUID = uuid7()
        rows = await self._insist(store.run(name, job_id, input=text, by=cleaned(by)))
        if not rows:
            await self._found(name)
            raise ScheduleConflict(name, "is retired, and its code may not exist any more: declare it again")
        self._runtime.session().notify(Wakeup.new_jobs(rows[0].queue))
        return Handle(job_id, rows[0].kind, self._runtime)

    async def delete(self, name: str) -> None:
        """Deletes it. Its jobs continue. A schedule that code declares cannot be deleted: pause it, or change the code."""
        if await self._runtime.session().fetch(store.delete(name)):
            return
        found = await self._found(name)
        raise ScheduleConflict(name, f"is declared by the code of {found.owner}: remove it there, or pause it")

    # Reading

    async def find(self, name: str) -> ScheduleStatus | None:
        rows = await self._insist(store.find(name))
        return ScheduleStatus.from_row(rows[0]) if rows else None

    async def list(self, *, retired: bool = False, owner: str | None = None) -> builtins.list[ScheduleStatus]:
        """All schedules by name; retired ones only on request."""
        rows = await self._runtime.session().reader(self._runtime.client_timeout(), wide=True)(
            store.list_all(retired=retired, owner=owner)
        )
        return [ScheduleStatus.from_row(row) for row in rows]

    async def upcoming(self, name: str, count: int = 5) -> builtins.list[datetime]:
        """Its next planned times, in its own time zone; none while it is paused or retired."""
        found = await self._found(name)
        return found.upcoming(count) if found.active else []

    async def ticks(self, name: str, *, limit: int = 50, before: datetime | None = None) -> builtins.list[Tick]:
        """The outcomes of its planned times, newest first. `before` is the last `planned_at` of the previous page."""
        if not 1 <= limit <= LARGEST_PAGE:
            raise ConfigError(f"limit is {limit}, but must be between 1 and {LARGEST_PAGE}")
        rows = await self._insist(store.list_ticks(name, limit=limit, before=before))
        return [Tick.from_row(row) for row in rows]

    create_sync = sync_version(create)
    change_sync = sync_version(change)
    pause_sync = sync_version(pause)
    resume_sync = sync_version(resume)
    run_now_sync = sync_version(run_now)
    delete_sync = sync_version(delete)
    find_sync = sync_version(find)
    list_sync = sync_version(list)  # noqa: A003 - the method above
    upcoming_sync = sync_version(upcoming)
    ticks_sync = sync_version(ticks)

    async def _found(self, name: str) -> ScheduleStatus:
        found = await self.find(name)
        if found is None:
            raise ScheduleNotFound(name)
        return found

    async def _insist(self, query: Query[T]) -> builtins.list[T]:
        """Repeats the statement while PostgreSQL is away. It is safe to repeat: the statement recognizes its own earlier try."""
        return await self._runtime.session().reader(self._runtime.client_timeout())(query)

    def _notify_leader(self) -> None:
        self._runtime.session().notify(Wakeup.schedule_changed())

    def _kind(self, job: Job[Any, Any, Any, Any] | UnknownJob | str) -> Kind | UnknownJob | str:
        if isinstance(job, Job):
            return job.kind
        return self._runtime.kinds.get(job, job) if isinstance(job, str) else job

    def _changed(self, before: Schedule, wanted: dict[str, Any]) -> Schedule:
        options = {field.name: getattr(before, field.name) for field in fields(before)}
        if wanted.get("cron") is not None:
            options["every"] = None
        if wanted.get("every") is not None:
            options |= {"cron": None, "timezone": None}
        options |= wanted
        return _made(self._kind(options.pop("kind")), options.pop("name"), options.pop("input"), options)


def _made(kind: Kind | UnknownJob | str, name: str, input: Any, options: dict[str, Any]) -> Schedule:  # noqa: A002
    given = {option: value for option, value in options.items() if value is not None}
    if isinstance(kind, Kind):
        routed = {"queue": kind.queue, "priority": kind.priority, "max_attempts": kind.retry.max_attempts}
        return schedule_of(kind, name=name, input=input, **{**routed, **given})
    if isinstance(kind, UnknownJob):
        return schedule(name=name, kind=kind.name, input=input, **{**_declared(kind), **given})
    return schedule(name=name, kind=kind, input=input, **given)


def _declared(job: UnknownJob) -> dict[str, Any]:
    return {
        "queue": job.queue,
        "priority": job.priority,
        "capability": job.capability,
        "max_attempts": job.retry.max_attempts,
        "expires": job.expires,
    }
