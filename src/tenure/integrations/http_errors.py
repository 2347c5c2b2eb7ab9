"""Which HTTP status errors of Tenure have, for frameworks that answer requests."""

from __future__ import annotations

from collections.abc import Mapping

from tenure.model.errors import InvalidInput, JobNotFound, JobUnfinished, NotPossible, StoreUnavailable, TenureError

UNAVAILABLE = 503

STATUS: Mapping[type[TenureError], int] = {
    JobNotFound: 404,  # also of an id that is not one
    InvalidInput: 422,
    JobUnfinished: 409,
    NotPossible: 409,
    StoreUnavailable: UNAVAILABLE,
}
"""Of errors that a request can cause. All others are errors of the code."""


def status_of(error: TenureError) -> int:
    return next(status for type_, status in STATUS.items() if isinstance(error, type_))


def detail_of(error: TenureError) -> str:
    """What the client is shown. Not what names the server."""
    return "the job queue cannot be reached" if isinstance(error, StoreUnavailable) else str(error)


def headers_of(error: TenureError) -> dict[str, str]:
    return {"Retry-After": "5"} if isinstance(error, StoreUnavailable) else {}
