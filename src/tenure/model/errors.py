"""Every error Tenure raises on purpose.

    TenureError
    ├── ConfigError            a setting is wrong or missing; nothing was started
    ├── NotEnqueued            nothing was written; the call can be mended and repeated
    │   ├── InvalidInput       the arguments do not fit the job's signature (`problems`)
    │   ├── InvalidPayload     PostgreSQL cannot keep it: NUL, NaN, too large, too deep
    │   └── UnknownKind        no such job in this app (`kind`, `known`)
    ├── InvalidOutput          a handler returned what its annotation does not allow
    ├── JobNotFound            no such job any more (`job_id`)
    ├── JobUnfinished          the job came to no result
    │   ├── JobFailed          it failed for good (`state`, `error_type`, `message`, `traceback`)
    │   ├── JobCanceled        it was canceled (`reason`)
    │   └── ResultTimeout      it is not done yet; a TimeoutError too
    ├── LeaseLost              the run is no longer ours; its writes were refused (`job_id`, `reason`)
    ├── SchemaMismatch         the database's schema is older or newer than this code (`found`, `needed`)
    └── StoreUnavailable       PostgreSQL cannot be reached; the call may be repeated

A class for each decision a caller can take. Messages end with the way out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from uuid import UUID


class TenureError(Exception):
    """The root: `except TenureError` catches whatever Tenure raises on purpose."""


class ConfigError(TenureError):
    """A setting is wrong or missing. Nothing was started."""


class NotEnqueued(TenureError):  # noqa: N818 - reads as the fact it states
    """Nothing was written."""


class InvalidInput(NotEnqueued):
    def __init__(self, kind: str, problems: Sequence[str]) -> None:
        self.kind = kind
        self.problems = list(problems)
        super().__init__(f"arguments do not fit job {kind!r}: " + "; ".join(self.problems))


class InvalidPayload(NotEnqueued):
    """The JSON would be refused by PostgreSQL, or is larger than the limit."""


class UnknownKind(NotEnqueued):
    def __init__(self, kind: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.known = sorted(known)
        near = get_close_matches(kind, self.known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"this app knows: {', '.join(self.known) or 'no job at all'}"
        super().__init__(f"no job named {kind!r} in this app; {hint}")


class InvalidOutput(TenureError):  # noqa: N818
    """A handler returned a value its return annotation does not allow."""


class JobNotFound(TenureError):  # noqa: N818 - reads as the fact it states
    def __init__(self, job_id: UUID) -> None:
        self.job_id = job_id
        super().__init__(f"there is no job {job_id}: it was deleted, or its retention is over")


class JobUnfinished(TenureError):  # noqa: N818
    """The job came to no result (yet)."""

    def __init__(self, job_id: UUID, kind: str, told: str) -> None:
        self.job_id = job_id
        self.kind = kind
        super().__init__(f"job {job_id} ({kind}) {told}")


class JobFailed(JobUnfinished):
    """Raised by `handle.result()`; the remote traceback is in `traceback`."""

    def __init__(self, job_id: UUID, kind: str, state: str, error: str | None) -> None:
        self.state = state
        self.traceback = error or ""
        last = (error or "no reason given").strip().splitlines()[-1]
        name, _, rest = last.partition(": ")
        told_by_exception = (error or "").startswith(("Traceback", "  +")) or name.isidentifier()
        self.error_type = name.rsplit(".", 1)[-1] if told_by_exception and " " not in name else None
        self.message = rest if self.error_type else last
        way_out = "; replay it once the cause is mended" if state == "dead_letter" else ""
        super().__init__(job_id, kind, f"failed: {last}{way_out}")


class JobCanceled(JobUnfinished):
    def __init__(self, job_id: UUID, kind: str, reason: str | None) -> None:
        self.reason = reason
        super().__init__(job_id, kind, f"was canceled: {reason or 'no reason given'}")


class ResultTimeout(JobUnfinished, TimeoutError):  # noqa: N818
    def __init__(self, job_id: UUID, kind: str, state: str, seconds: float) -> None:
        self.state = state
        super().__init__(job_id, kind, f"is not done after {seconds:g} s (it is {state}); it goes on: ask again, or explain() it")


class LeaseLost(TenureError):  # noqa: N818
    def __init__(self, job_id: UUID, reason: str) -> None:
        self.job_id = job_id
        self.reason = reason
        super().__init__(f"job {job_id} is no longer held by this run ({reason}); nothing was written")


class SchemaMismatch(TenureError):  # noqa: N818
    def __init__(self, found: int | None, needed: int, way_out: str) -> None:
        self.found = found
        self.needed = needed
        seen = "has no Tenure schema" if found is None else f"has schema version {found}"
        super().__init__(f"the database {seen}, this code needs version {needed}: {way_out}")


class StoreUnavailable(TenureError):  # noqa: N818
    """PostgreSQL cannot be reached right now."""
