"""Changes of rows in the record of a campaign, as triggers write them inside the changing transaction (`recorder.sql`)."""

from __future__ import annotations

from typing import Any, NamedTuple


class Move(NamedTuple):
    """A change of one row. The moves of one job are in the order of their commits.

    relation  jobs or history
    was       the state before, None for a new row
    state     the state after, None for a deleted row
    claim     after the change: the claim that holds the job or, in history, the claim that settled it
    output    the job's output, in history
    due       scheduled, retry, waiting: when the job is to become pending
    """

    seq: int
    at: float
    relation: str
    job: str
    was: str | None
    state: str | None
    fence: int
    was_claim: str | None
    claim: str | None
    worker: str | None
    attempt: int
    max_attempts: int
    crashes: int
    position: int
    queue: str
    priority: int
    kind: str
    n: int | None
    key: str | None
    output: Any
    due: float | None = None


class StepChange(NamedTuple):
    """A change of the row of one step of a workflow. The changes of one step are in the order of their commits.

    what    step, transaction, sleep, wait, call, on_rollback, undo, ...
    was     the state before, None for a new row
    state   done, failed, retry, open; None for a deleted row
    fence   of the run that wrote the row
    """

    seq: int
    at: float
    job: str
    step: str
    number: int
    what: str
    was: str | None
    state: str | None
    fence: int
    output: Any


class WorkerChange(NamedTuple):
    """`what`: registered, condemned (from here on it can neither claim nor renew), removed."""

    seq: int
    at: float
    worker: str
    pid: int
    what: str
    how: str | None


class LimitChange(NamedTuple):
    """A limit after a change. Without concurrency and rate, nothing is limited by it."""

    seq: int
    at: float
    name: str
    concurrency: int | None
    rate: bool


class TermChange(NamedTuple):
    seq: int
    at: float
    duty: str
    was_holder: str | None
    was_term: int | None
    holder: str | None
    term: int | None


class SeenScheduleChange(NamedTuple):
    """A schedule's row after a change. `since`: all planned times up to here are recorded; None: the row was deleted."""

    seq: int
    at: float
    name: str
    kind: str
    cron: str | None
    every: float | None
    timezone: str
    overlap: str
    catch_up: str
    catch_up_limit: int
    paused: bool
    retired: bool
    was_since: float | None
    since: float | None


class TickChange(NamedTuple):
    """A change of the record of one planned time, or of several consecutive ones that were missed.

    began     when the changing transaction began; `at` is when the row changed
    xact      the id of that transaction: ticks that are decided together are written together
    until     the last of the times that were missed together; `times` is how many they are
    was       the outcome before, None for a new row
    outcome   enqueued, skipped, queued, missed; None for a deleted row
    by        who asked for a run that was not planned
    """

    seq: int
    began: float
    at: float
    xact: int
    schedule: str
    planned: float
    until: float | None
    times: int
    was: str | None
    outcome: str | None
    job: str | None
    by: str | None
