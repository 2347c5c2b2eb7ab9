"""The run to which the current code belongs. Known to everything that a handler calls in its thread or task."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol


class Holder(Protocol):
    """A run that holds its job under a claim."""

    job_id: str
    claim_id: str
    queue: str
    attempt: int
    worker_id: str

    @property
    def kind_name(self) -> str: ...

    @property
    def auth(self) -> str | None: ...


current_run: ContextVar[Holder | None] = ContextVar("current_run", default=None)
