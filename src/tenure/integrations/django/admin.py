"""Jobs, workers and schedules in Django's admin: to look at, and with actions for what people do most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property
from django.utils.html import format_html

from tenure.integrations.django.app import app
from tenure.integrations.django.models import FinishedJob, JobFields, LiveJob, Schedule, Worker
from tenure.model.errors import TenureError
from tenure.model.states import State

MOST_COUNTED = 10_000
"""Rows that a list counts: counting all of a large history would take longer than the page."""


class CappedPaginator(Paginator):
    @cached_property
    def count(self) -> int:
        return int(self.object_list[:MOST_COUNTED].count())


class ReadOnlyAdmin(admin.ModelAdmin):
    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50

    def get_queryset(self, request: Any) -> QuerySet[Any]:
        return super().get_queryset(request).using(app.project.database)

    def get_readonly_fields(self, request: Any, obj: Any = None) -> Sequence[str]:
        del request, obj
        return [field.name for field in self.model._meta.fields]  # noqa: SLF001 - Django's API for models

    def has_add_permission(self, request: Any) -> bool:
        del request
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        del request, obj
        return False  # deleting a row here would leave the rest of the job behind

    def apply(self, request: Any, rows: Iterable[Any], action: Callable[[Any], object], done: str) -> None:
        """Applies the action to each row, and reports how many it changed and which errors there were."""
        changed = 0
        for row in rows:
            try:
                changed += bool(action(row))
            except TenureError as error:
                self.message_user(request, f"{row}: {error}", messages.ERROR)
        self.message_user(request, f"{changed} {done}", messages.SUCCESS if changed else messages.WARNING)


class KindFilter(admin.SimpleListFilter):
    """From the kinds that workers know: reading all kinds of a large table would be slow."""

    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        del request, model_admin
        return [(name, name) for name in sorted(app.kinds)]

    def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
        del request
        return queryset.filter(kind=self.value()) if self.value() else queryset


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"
    over = (State.COMPLETED, State.FAILED, State.CANCELED)

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        del request
        finished = model_admin.model is FinishedJob
        return [(state.value, state.value) for state in State if (state in self.over) == finished]

    def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
        del request
        return queryset.filter(state=self.value()) if self.value() else queryset


class JobAdmin(ReadOnlyAdmin):
    list_filter: ClassVar = [StateFilter, KindFilter]
    search_fields: ClassVar = ["=id", "=key"]
    search_help_text = "The id of a job, or its key"

    def get_readonly_fields(self, request: Any, obj: Any = None) -> Sequence[str]:
        return ["report", *super().get_readonly_fields(request, obj)]

    @admin.display(description="report")
    def report(self, job: JobFields) -> str:
        return str(format_html("<pre>{}</pre>", app.client().report_sync(job.id).to_text(full=True)))

    @admin.action(description="Run the selected jobs again", permissions=["change"])
    def retry(self, request: Any, jobs: QuerySet[Any]) -> None:
        self.apply(request, jobs, lambda job: app.client().retry_sync(job.id, by=_user(request)), "jobs run again")


@admin.register(LiveJob)
class LiveJobAdmin(JobAdmin):
    list_display: ClassVar = ["id", "kind", "queue", "state", "attempt", "enqueued_at", "run_at", "last_error"]
    actions: ClassVar = ["cancel", "retry"]

    @admin.display(description="error")
    def last_error(self, job: LiveJob) -> str:
        return (job.error or "").strip().rpartition("\n")[2][:120]

    @admin.action(description="Cancel the selected jobs", permissions=["change"])
    def cancel(self, request: Any, jobs: QuerySet[Any]) -> None:
        self.apply(request, jobs, lambda job: app.client().cancel_sync(job.id, by=_user(request)), "jobs canceled")


@admin.register(FinishedJob)
class FinishedJobAdmin(JobAdmin):
    list_display: ClassVar = ["id", "kind", "queue", "state", "attempt", "enqueued_at", "finished_at"]
    actions: ClassVar = ["retry"]


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    list_display: ClassVar = ["__str__", "host", "pid", "concurrency", "version", "started_at", "heartbeat_at", "died_at"]


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin):
    list_display: ClassVar = ["name", "kind", "cron", "every", "timezone", "next_at", "last_at", "paused_at"]
    actions: ClassVar = ["pause", "resume", "run_now"]

    @admin.action(description="Pause the selected schedules", permissions=["change"])
    def pause(self, request: Any, rows: QuerySet[Any]) -> None:
        def paused(row: Schedule) -> bool:
            app.schedules.pause_sync(row.name, by=_user(request))
            return True

        self.apply(request, rows, paused, "schedules paused")

    @admin.action(description="Resume the selected schedules", permissions=["change"])
    def resume(self, request: Any, rows: QuerySet[Any]) -> None:
        self.apply(request, rows, lambda row: app.schedules.resume_sync(row.name), "schedules resumed")

    @admin.action(description="Enqueue a job of the selected schedules now", permissions=["change"])
    def run_now(self, request: Any, rows: QuerySet[Any]) -> None:
        self.apply(request, rows, lambda row: app.schedules.run_now_sync(row.name, by=_user(request)), "jobs enqueued")


def _user(request: Any) -> str:
    return str(request.user.get_username())
