"""Tenure's tables as unmanaged models, for the admin and for queries of your own. Only read them: statements check claims."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from tenure.model.states import State

STATES = [(state.value, state.value.replace("_", " ")) for state in State]


def table(name: str) -> str:
    schema = (getattr(settings, "TENURE", None) or {}).get("SCHEMA", "tenure")
    return f'"{schema}"."{name}"'


class JobFields(models.Model):
    """What live and finished jobs have in common."""

    id = models.UUIDField(primary_key=True)
    kind = models.TextField()
    queue = models.TextField()
    state = models.TextField(choices=STATES)
    priority = models.SmallIntegerField()
    attempt = models.IntegerField()
    max_attempts = models.IntegerField()
    crashes = models.SmallIntegerField()
    enqueued_at = models.DateTimeField()
    run_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    error = models.TextField(null=True)  # noqa: DJ001 - the column is nullable
    input = models.JSONField()
    key = models.TextField(null=True)  # noqa: DJ001
    parent_id = models.UUIDField(null=True)
    enqueued_by = models.TextField(null=True)  # noqa: DJ001
    meta = models.JSONField(null=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class LiveJob(JobFields):
    """Jobs that are not over, and dead letters."""

    class Meta:
        managed = False
        db_table = table("jobs")
        ordering: ClassVar = ["-id"]


class FinishedJob(JobFields):
    """Completed, failed and canceled jobs, for as long as they are kept."""

    finished_at = models.DateTimeField()
    output = models.JSONField(null=True)

    class Meta:
        managed = False
        db_table = table("history")
        ordering: ClassVar = ["-id"]


class Worker(models.Model):
    """A process that runs jobs."""

    id = models.UUIDField(primary_key=True)
    name = models.TextField(null=True)  # noqa: DJ001
    host = models.TextField()
    pid = models.IntegerField()
    queues = models.JSONField()
    kinds = models.JSONField()
    concurrency = models.IntegerField()
    version = models.TextField()
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    died_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = table("workers")
        ordering: ClassVar = ["host", "pid"]

    def __str__(self) -> str:
        return self.name or f"{self.host}:{self.pid}"


class Schedule(models.Model):
    """Planned times, and the kind of job that is enqueued then."""

    name = models.TextField(primary_key=True)
    owner = models.TextField(null=True)  # noqa: DJ001
    kind = models.TextField()
    cron = models.TextField(null=True)  # noqa: DJ001
    every = models.FloatField(null=True)
    timezone = models.TextField()
    input = models.JSONField()
    queue = models.TextField()
    paused_at = models.DateTimeField(null=True)
    paused_by = models.TextField(null=True)  # noqa: DJ001
    retired_at = models.DateTimeField(null=True)
    next_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = table("schedules")
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return str(self.name)
