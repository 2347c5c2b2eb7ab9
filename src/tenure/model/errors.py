"""Every error Tenure raises on purpose.

    TenureError
    ├── ConfigError            a setting is wrong or missing; nothing was started
    ├── NotEnqueued            nothing was written; the call can be corrected and repeated
    │   ├── InvalidInput       the arguments do not fit the job's signature (`problems`)
    │   ├── InvalidPayload     PostgreSQL cannot store it: NUL, NaN, too large, too deep
    │   └── UnknownKind        no such job in this app (`kind`, `known`)
    ├── InvalidOutput          a handler returned what its annotation does not allow
    ├── JobNotFound            no such job, or no longer (`job_id`)
    │   └── InvalidJobId       what was given is not an id
    ├── JobsLocked             another transaction keeps the jobs' rows locked (`ids`); the others were changed
    ├── JobsRefused            PostgreSQL refuses to change the jobs' rows (`ids`, `done`, `reasons`); the others were changed
    ├── NotPossible            the jobs' state does not allow it (`ids`); nothing was changed
    │   └── KeyTaken           other jobs have the keys of these dead letters (`holders`); the others were replayed
    ├── JobUnfinished          the job has no result
    │   ├── JobFailed          it failed for good (`state`, `error_type`, `error_class`, `error_message`, `traceback`)
    │   ├── JobCanceled        it was canceled (`reason`)
    │   └── ResultTimeout      it is not done yet; a TimeoutError too
    ├── ScheduleNotFound       no such schedule (`name`)
    ├── ScheduleConflict       code declares it, or another process changed it first (`name`); nothing was changed
    ├── TransactionAborted     the caller's transaction was aborted by an earlier error; nothing was written
    ├── LeaseLost              the run no longer holds its job; its writes were refused (`job_id`, `reason`)
    ├── TransactionError       ctx.transaction() cannot commit the job with the handler's writes (`committed`)
    ├── StepFailed             a step of a workflow failed for good (`step`, `error_type`, `error_message`, `traceback`)
    ├── WaitTimeout            no event came in time for a workflow (`step`); a TimeoutError too
    ├── RemoteError            an exception from another process, whose class is not imported here (`type_name`)
    ├── ProcessDied            the process of a `run_in="process"` handler died: a crash, not a failed attempt
    ├── LeaseTaken             another process holds the lease of `app.lease()` (`name`)
    ├── LeaseNotHeld           the lease of `app.lease()` is not held, or was lost (`name`, `term`)
    ├── SchemaMismatch         the database's schema is older or newer than this code (`found`, `needed`)
    └── StoreUnavailable       PostgreSQL cannot be reached, or cannot do this now; the call may be repeated (`cause`)

One class for each decision that a caller can take. Messages end with the way out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from uuid import UUID

from tenure.model.failures import Failure


class TenureError(Exception):
    """The root: `except TenureError` catches every error that Tenure raises on purpose."""


class ConfigError(TenureError):
    """A setting is wrong or missing. Nothing was started."""

    def __init__(self, *args: object, option: str | None = None) -> None:
        self.option = option
        """The option whose value is wrong, if it is one of a call, a filter, a schedule or a limit."""
        super().__init__(*args)


class NotEnqueued(TenureError):  # noqa: N818 - reads as the fact it states
    """Nothing was written."""


@dataclass(frozen=True, slots=True)
class InputProblem:
    """Why arguments do not fit. As text, it is one line for people: `user.age: Input should be a valid integer`."""

    message: str
    path: tuple[str | int, ...] = ()
    """Names and indexes of the value that was refused. Empty: the input as a whole."""
    root: str = ""
    """What the input as a whole is called in the line."""
    missing: bool = False
    """The last name of the path was not given."""

    def __str__(self) -> str:
        where = ".".join(map(str, self.path)) or self.root
        return f"{where}: {self.message}" if where else self.message

    def below(self, name: str) -> InputProblem:
        """The same in an input that has this one as its member."""
        return replace(self, path=(name, *self.path))


class InvalidInput(NotEnqueued):
    def __init__(self, kind: str, problems: Sequence[InputProblem]) -> None:
        self.kind = kind
        self.problems = list(problems)
        super().__init__(f"arguments do not fit job {kind!r}: " + "; ".join(map(str, self.problems)))


class InvalidPayload(NotEnqueued):
    """The JSON would be refused by PostgreSQL, or is larger than the limit."""

    option: str | None = None
    """The option whose value it is, if it is one."""


class UnknownKind(NotEnqueued, KeyError):  # noqa: N818
    """Also a `KeyError`, because jobs are looked up by name: `app.jobs.get(name)` returns None."""

    def __init__(self, kind: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.known = sorted(known)
        near = [repr(name) for name in get_close_matches(str(kind), self.known, n=3)]
        hint = f"did you mean {' or '.join(near)}?" if near else f"this app defines {', '.join(self.known) or 'no jobs'}"
        super().__init__(f"no job named {kind!r} in this app; {hint}")

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would print its repr


class InvalidOutput(TenureError):  # noqa: N818
    """A handler returned a value its return annotation does not allow."""


class JobNotFound(TenureError):  # noqa: N818 - reads as the fact it states
    def __init__(self, job_id: UUID | str) -> None:
        self.job_id = job_id
        super().__init__(self._message())

    def _message(self) -> str:
        reasons = "it was deleted, its retention is over, or the transaction that enqueued it has not committed"
        return f"job {self.job_id} does not exist: check the id; or {reasons}"


class InvalidJobId(JobNotFound):
    """The given id is not a UUID."""

    def _message(self) -> str:
        return f"{self.job_id!r} is not a UUID: give the id that enqueue returned"


class JobUnfinished(TenureError):  # noqa: N818
    """The job has no result (yet)."""

    def __init__(self, job_id: UUID, kind: str, problem: str) -> None:
        self.job_id = job_id
        self.kind = kind
        super().__init__(f"job {job_id} ({kind}) {problem}")


class JobFailed(JobUnfinished):
    """Raised by `handle.result()`. The traceback of the worker is in `traceback`, and shown as a note of this exception."""

    def __init__(self, job_id: UUID, kind: str, state: str, error: str | None) -> None:
        self.state = state
        failure = Failure.read(error or "", is_reason=state == "failed")
        self.error_type = failure.type
        self.error_class = failure.path
        self.error_message = self.message = failure.message
        self.traceback = failure.traceback
        way_out = "; replay it once the cause is fixed" if state == "dead_letter" else ""
        super().__init__(job_id, kind, f"failed: {failure}{way_out}")
        if failure.traceback:
            self.add_note("The traceback of its last attempt, in the worker:\n" + failure.traceback.rstrip("\n"))


class JobCanceled(JobUnfinished):
    def __init__(self, job_id: UUID, kind: str, reason: str | None) -> None:
        self.reason = reason
        why = reason or "no reason given"
        super().__init__(job_id, kind, f"was {why}" if why.startswith("canceled") else f"was canceled: {why}")


class ResultTimeout(JobUnfinished, TimeoutError):  # noqa: N818
    def __init__(self, job_id: UUID, kind: str, state: str, seconds: float) -> None:
        self.state = state
        super().__init__(
            job_id, kind, f"is not done after {seconds:g} s (it is {state}); it continues: wait again, or explain() it"
        )


class NotPossible(TenureError):  # noqa: N818 - reads as the fact it states
    """The job's state does not allow it. Nothing was changed."""

    def __init__(self, ids: Collection[UUID], problem: str) -> None:
        self.ids = list(ids)
        super().__init__(f"{_named(self.ids)} {problem}")


class KeyTaken(NotPossible):
    """Other jobs have the keys of these dead letters now."""

    def __init__(self, holders: Mapping[UUID, UUID]) -> None:
        self.holders = dict(holders)
        """By the id of the dead letter: the job that has its key."""
        others = ", ".join(str(job_id) for job_id in list(self.holders.values())[:3])
        problem = f"cannot run again while job {others} has the same key: wait until that one is over, or cancel it"
        super().__init__(list(self.holders), problem)


class JobsLocked(TenureError):  # noqa: N818
    """Another transaction keeps the jobs' rows locked. The others were changed."""

    def __init__(self, ids: Collection[UUID], seconds: float) -> None:
        self.ids = list(ids)
        problem = f"held by another transaction for more than {seconds:g} s: find it in pg_stat_activity, end it and try again"
        super().__init__(f"{_named(self.ids)} {problem}")


class JobsRefused(TenureError):  # noqa: N818
    """PostgreSQL refuses to change the rows of these jobs, because of a trigger or a constraint. The others were changed."""

    def __init__(self, reasons: Mapping[UUID, str], done: int, *, stopped: bool = False) -> None:
        """`stopped`: too many were refused, so the call did not try the rest."""
        self.reasons = dict(reasons)
        """By the id of the job: PostgreSQL's message."""
        self.ids = list(self.reasons)
        self.done = done
        """How many others were changed."""
        listed = "; ".join(list(dict.fromkeys(self.reasons.values()))[:3])
        way_out = "remove the cause, such as a trigger or a constraint, and try again"
        others = f"{done} other jobs were changed" + (", and the call stopped there" if stopped else "")
        super().__init__(f"PostgreSQL refuses to change {_named(self.ids)}: {listed}; {others}; {way_out}")


class ScheduleNotFound(TenureError):  # noqa: N818 - reads as the fact it states
    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"schedule {name!r} does not exist: `tenure schedules list --all` shows all schedules")


class ScheduleConflict(TenureError):  # noqa: N818
    """Code declares the schedule, or another process changed it first. Nothing was changed."""

    def __init__(self, name: str, problem: str) -> None:
        self.name = name
        super().__init__(f"schedule {name!r} {problem}")


class TransactionAborted(TenureError):  # noqa: N818 - reads as the fact it states
    """The transaction that was passed as `conn=` was aborted earlier. Nothing was written."""

    def __init__(self) -> None:
        super().__init__(
            "this transaction was aborted by an earlier error, so nothing can be written in it: "
            "roll it back, or roll back to a savepoint, and repeat it"
        )


class LeaseLost(TenureError):  # noqa: N818
    def __init__(self, job_id: UUID, reason: str) -> None:
        self.job_id = job_id
        self.reason = reason
        super().__init__(f"job {job_id} is no longer held by this run ({reason}); nothing was written")


class TransactionError(TenureError):
    """The job cannot be completed in the same transaction as the handler's writes. The completion was not written."""

    def __init__(self, message: str, *, committed: bool = False) -> None:
        self.committed = committed
        """The handler has committed writes itself. They are permanent, so the job is not retried: a retry would repeat them."""
        super().__init__(message)


class StepFailed(TenureError):  # noqa: N818 - reads as the fact it states
    """A step of a workflow failed, and is not tried again. The same in every run: of the exception only the text is kept."""

    def __init__(self, step: str, error: str) -> None:
        self.step = step
        self.error = error
        failure = Failure.read(error)
        self.error_type = failure.type
        """The name of the exception's class: `CardDeclined`."""
        self.error_class = failure.path
        """The same with its module."""
        self.error_message = failure.message
        self.traceback = failure.traceback
        super().__init__(f"step {step!r} failed: {failure}")


class WaitTimeout(TenureError, TimeoutError):  # noqa: N818 - reads as the fact it states
    """A workflow waited for an event, and it did not come in time. The same in every run."""

    def __init__(self, step: str) -> None:
        self.step = step
        super().__init__(f"no event came in time for {step!r}")


class RemoteError(TenureError):
    """An exception of a `run_in="process"` handler whose class is not imported in the worker's process."""

    def __init__(self, type_name: str, message: str, traceback: str) -> None:
        self.type_name = type_name
        """Module and name of the class: `billing.errors.CardDeclined`."""
        self.traceback = traceback
        super().__init__(f"{type_name}: {message}".removesuffix(": "))


class ProcessDied(TenureError):  # noqa: N818 - reads as the fact it states
    """The process of a `run_in="process"` handler died. Middleware that catches it decides the outcome; otherwise it is a crash:
    no attempt is spent, and after the third one the job is quarantined."""


class LeaseTaken(TenureError):  # noqa: N818 - reads as the fact it states
    """Another process holds the lease, and did not release it in time."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"lease {name!r} is held by another process: `tenure leaders` shows which; wait longer, or try again later"
        )


class LeaseNotHeld(TenureError):  # noqa: N818
    """The lease is not held, or was lost: another process may have it."""

    def __init__(self, name: str, term: int | None) -> None:
        self.name = name
        self.term = term
        was = "is not held: enter `async with` or call acquire() first" if term is None else f"was lost in term {term}"
        super().__init__(f"lease {name!r} {was}")


class SchemaMismatch(TenureError):  # noqa: N818
    def __init__(self, found: int | None, needed: int, way_out: str) -> None:
        self.found = found
        self.needed = needed
        seen = "has no Tenure schema" if found is None else f"has schema version {found}"
        super().__init__(f"the database {seen}, this code needs version {needed}: {way_out}")


class StoreUnavailable(TenureError):  # noqa: N818
    """PostgreSQL cannot be reached, or cannot do this now. The message names the reason; the call may be repeated."""

    def __init__(self, message: str, *, cause: str = "connection", statement: str = "", server: str = "") -> None:
        """`cause` is one word for the reason; `statement` and `server` name what failed where. All for the log."""
        self.cause = cause
        self.statement = statement
        self.server = server
        super().__init__(message)


def _named(ids: Sequence[UUID]) -> str:
    shown = ", ".join(str(job_id) for job_id in ids[:3])
    return f"job {shown}" if len(ids) == 1 else f"jobs {shown}" + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
