"""The exit codes, and which error ends with which."""

from __future__ import annotations

from typing import Final

from tenure.model.errors import (
    ConfigError,
    JobCanceled,
    JobFailed,
    JobNotFound,
    NotEnqueued,
    ResultTimeout,
    ScheduleNotFound,
    SchemaMismatch,
    TenureError,
)
from tenure.model.states import State

FINE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
SETTINGS: Final = 3
SCHEMA: Final = 4
JOB_FAILED: Final = 5
TIMED_OUT: Final = 6
CANCELED: Final = 7
NOT_FOUND: Final = 8
CRASHING: Final = 9
STOPPED: Final = 130  # by Ctrl-C, as shells have it
UNREAD: Final = 141  # the reader of the output went away (SIGPIPE), as shells have it

MEANINGS = {
    FINE: "all well",
    FAILED: "failed",
    USAGE: "wrong usage",
    SETTINGS: "wrong or missing settings",
    SCHEMA: "the schema does not fit",
    JOB_FAILED: "the job failed",
    TIMED_OUT: "timed out",
    CANCELED: "the job was canceled",
    NOT_FOUND: "no such job or schedule",
    CRASHING: "worker processes die again and again",
}

_BY_ERROR: dict[type[TenureError], int] = {
    NotEnqueued: USAGE,
    ConfigError: SETTINGS,
    SchemaMismatch: SCHEMA,
    JobFailed: JOB_FAILED,
    ResultTimeout: TIMED_OUT,
    JobCanceled: CANCELED,
    JobNotFound: NOT_FOUND,
    ScheduleNotFound: NOT_FOUND,
}


def of_error(error: TenureError) -> int:
    return next((code for kind, code in _BY_ERROR.items() if isinstance(error, kind)), FAILED)


def of_state(state: State) -> int:
    """Of a job that is over."""
    if state == State.COMPLETED:
        return FINE
    return CANCELED if state == State.CANCELED else JOB_FAILED
