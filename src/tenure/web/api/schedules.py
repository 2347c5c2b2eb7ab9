"""Schedules: create, change, run, pause and resume them."""

from __future__ import annotations

from typing import Any, cast

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from tenure.client.named import UnknownJob
from tenure.client.schedule_status import ScheduleStatus, Tick
from tenure.model.errors import ScheduleNotFound
from tenure.model.schedules import CatchUp, Overlap
from tenure.web.api.job_actions import WillRun
from tenure.web.api_routes import ApiCall, RequestModel
from tenure.web.kind_directory import check_args
from tenure.web.security.redaction import refuse_redacted

OF_THE_KIND = ("queue", "priority", "expires")
"""What a schedule takes from its kind if it is null."""


class ScheduleChange(RequestModel):
    cron: str | None = None
    every: float | str | None = Field(None, description='Seconds, or "10m". Instead of `cron`.')
    timezone: str | None = None
    input: dict[str, Any] | None = None
    queue: str | None = None
    priority: int | str | None = None
    overlap: Overlap | None = None
    catch_up: CatchUp | None = None
    catch_up_limit: int | None = None
    jitter: float | str | None = None
    expires: float | str | None = Field(None, description='Seconds, or "10m": jobs that were not started by then are canceled.')

    def options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set & set(ScheduleChange.model_fields)}


class ScheduleBody(ScheduleChange):
    name: str
    kind: str
    paused: bool = False


class PauseScheduleBody(RequestModel):
    reason: str | None = Field(None, max_length=1000)


class RunBody(RequestModel):
    input: dict[str, Any] | None = Field(None, description="For this run only. Left out: that of the schedule.")


class SchedulesQuery(RequestModel):
    retired: bool = Field(False, description="Also those that no code declares any more.")


class TicksQuery(RequestModel):
    limit: int = Field(50, ge=1, le=200)
    before: AwareDatetime | None = Field(None, description="The last `planned_at` of the previous page.")


class ScheduleView(TypedDict):
    name: str
    owner: str | None
    """The app whose code declares it. None: created at run time."""
    kind: str
    cron: str | None
    every: float | None
    timezone: str
    words: str
    """When it runs, in words."""
    input: Any
    queue: str
    priority: int
    capability: str | None
    max_attempts: int
    timeout: float | None
    overlap: str
    catch_up: str
    catch_up_limit: int
    jitter: float
    expires: float | None
    """Seconds after which a job that was not started is canceled."""
    created_at: str
    changed_at: str
    changed_by: str | None
    paused_at: str | None
    paused_by: str | None
    pause_reason: str | None
    retired_at: str | None
    next_at: str | None
    last_at: str | None
    asked_at: str
    upcoming: list[str]
    """The next planned times, in its time zone, as if it were not paused."""


class ScheduleList(TypedDict):
    schedules: list[ScheduleView]


class TickView(TypedDict):
    schedule: str
    planned_at: str
    until: str | None
    times: int
    outcome: str
    """enqueued, skipped, queued or missed."""
    job_id: str | None
    recorded_at: str
    by: str | None
    job_state: str | None
    """The current state of its job."""
    is_late: bool


class TickList(TypedDict):
    ticks: list[TickView]


async def list_schedules(call: ApiCall, query: SchedulesQuery) -> ScheduleList:
    """List schedules by name, with their next planned time."""
    shared = call.services.stats.rare
    found = await call.services.schedules.list(retired=True) if query.retired else (await shared.get()).schedules
    return {"schedules": [_shown(call, one) for one in found]}


async def get_schedule(call: ApiCall) -> ScheduleView:
    """Show a schedule."""
    return _shown(call, await _found(call))


async def list_ticks(call: ApiCall, query: TicksQuery) -> TickList:
    """List what happened at the planned times of a schedule, newest first."""
    await _found(call)
    ticks: list[Tick] = await call.services.schedules.ticks(call.path["name"], limit=query.limit, before=query.before)
    return {"ticks": [cast("TickView", tick.to_json()) for tick in ticks]}


async def create_schedule(call: ApiCall, body: ScheduleBody) -> ScheduleView:
    """Create a schedule."""
    await _check_input(call, body.kind, body.input)
    job = body.kind if body.kind in call.services.runtime.kinds else await _published(call, body.kind)
    options = {name: value for name, value in body.options().items() if value is not None}
    made = await call.services.schedules.create(body.name, job, paused=body.paused, by=call.principal.name, **options)
    call.services.stats.rare.forget()
    call.note(subject=body.name, after=made.to_json())
    return _shown(call, made)


async def change_schedule(call: ApiCall, body: ScheduleChange) -> ScheduleView:
    """Change a schedule that was created at run time. What is left out stays unchanged."""
    before = await _found(call)
    if "input" in body.model_fields_set:
        await _check_input(call, before.kind, body.input)
    options = body.options()
    if before.kind not in call.services.runtime.kinds and any(options.get(name, "") is None for name in OF_THE_KIND):
        job = await _published(call, before.kind)
        options |= {name: getattr(job, name) for name in OF_THE_KIND if options.get(name, "") is None}
    after = await call.services.schedules.change(before.name, by=call.principal.name, **options)
    call.services.stats.rare.forget()
    call.note(before=before.to_json(), after=after.to_json())
    return _shown(call, after)


async def delete_schedule(call: ApiCall) -> None:
    """Delete a schedule that was created at run time. Its jobs continue."""
    before = await _found(call)
    await call.services.schedules.delete(before.name)
    call.services.stats.rare.forget()
    call.note(before=before.to_json())


async def run_schedule(call: ApiCall, body: RunBody) -> WillRun:
    """Enqueue the job of a schedule at once, even if it is paused or an earlier job is live."""
    found = await _found(call)
    options: dict[str, Any] = {}
    if "input" in body.model_fields_set:
        await _check_input(call, found.kind, body.input)
        options["input"] = body.input
    handle = await call.services.schedules.run_now(found.name, by=call.principal.name, **options)
    call.services.stats.rare.forget()
    call.note(after={"id": str(handle.id)})
    return {"id": str(handle.id)}


async def pause_schedule(call: ApiCall, body: PauseScheduleBody) -> ScheduleView:
    """Plan no more times until it is resumed. Its jobs continue."""
    before = await _found(call)
    await call.services.schedules.pause(before.name, reason=body.reason, by=call.principal.name)
    call.services.stats.rare.forget()
    call.note(before={"paused": before.paused}, after={"paused": True})
    return _shown(call, await _found(call))


async def resume_schedule(call: ApiCall) -> ScheduleView:
    """Continue from now on. Times that passed while it was paused are left out."""
    before = await _found(call)
    await call.services.schedules.resume(before.name)
    call.services.stats.rare.forget()
    call.note(before={"paused": before.paused}, after={"paused": False})
    return _shown(call, await _found(call))


async def _found(call: ApiCall) -> ScheduleStatus:
    found = await call.services.schedules.find(call.path["name"])
    if found is None:
        raise ScheduleNotFound(call.path["name"])
    return found


async def _published(call: ApiCall, kind: str) -> UnknownJob:
    """With the queue, the attempts and all else that the kind declares, as its workers have published it."""
    return UnknownJob.of_published((await call.services.kinds.published(kind, call.principal)).kind)


async def _check_input(call: ApiCall, kind: str, given: dict[str, Any] | None) -> None:
    """By what workers have published, if this process does not define the kind."""
    refuse_redacted(given, "input")
    if kind not in call.services.runtime.kinds:
        await check_args(await call.services.kinds.published(kind, call.principal), given or {}, "input")


def _shown(call: ApiCall, schedule: ScheduleStatus) -> ScheduleView:
    upcoming = [] if schedule.retired_at is not None else [one.isoformat() for one in schedule.upcoming()]
    view: ScheduleView = call.services.redaction.hide({**schedule.to_json(), "upcoming": upcoming})
    return view
