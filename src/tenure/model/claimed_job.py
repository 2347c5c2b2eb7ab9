"""A claimed job, in the one shape that it has from the claim's row to the process of its handler."""

from __future__ import annotations

from typing import NamedTuple


class ClaimedJob(NamedTuple):
    """The fields are the columns that both claim statements return, by name."""

    id: str
    kind: str
    queue: str
    priority: int
    position: int
    attempt: int
    max_attempts: int
    crashes: int
    fence: int
    input: str
    """JSON text, as `auth`, `meta` and `system`."""
    timeout: float | None
    auth: str | None
    meta: str | None
    system: str | None
    """Set by Tenure; `meta` is the user's."""
    limit_group: str | None
    """The limit group that the job is counted in."""
