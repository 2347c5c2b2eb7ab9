"""The exit codes, and which error leads to which."""

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

SUCCESS: Final = 0
FAILED: Final = 1
USAGE: Final = 2
SETTINGS: Final = 3
SCHEMA: Final = 4
JOB_FAILED: Final = 5
TIMED_OUT: Final = 6
CANCELED: Final = 7
NOT_FOUND: Final = 8
CRASH_LOOP: Final = 9
INTERRUPTED: Final = 130  # by Ctrl-C: the shells' convention
CLOSED_PIPE: Final = 141  # the reader of the output closed it (SIGPIPE): the shells' convention

MEANINGS = {
    SUCCESS: "success",
    FAILED: "failed",
    USAGE: "wrong usage",
    SETTINGS: "wrong or missing settings",
    SCHEMA: "the schema does not match this version",
    JOB_FAILED: "the job failed",
    TIMED_OUT: "timed out",
    CANCELED: "the job was canceled",
    NOT_FOUND: "the job or schedule does not exist",
    CRASH_LOOP: "worker processes keep dying",
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
    """For a job that has finished or was dead-lettered."""
    if state == State.COMPLETED:
        return SUCCESS
    return CANCELED if state == State.CANCELED else JOB_FAILED
