"""Which jobs: the filters of lists and of bulk actions."""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, Field

from tenure.client.filters import Filters
from tenure.model.options import check_option
from tenure.model.payloads import check_json_text
from tenure.model.states import State
from tenure.web.api_routes import RequestModel
from tenure.web.problems import invalid_value

LARGEST_FILTER = 16 * 1024  # bytes
MOST_IDS = 1000


class JobFilter(RequestModel):
    """All that are given must match."""

    state: list[State] | None = Field(None, max_length=len(State), description="One or several states.")
    kind: str | None = None
    queue: str | None = None
    priority: int | str | None = Field(None, description="0 to 100, or critical, high, normal, low, background.")
    capability: str | None = None
    key: str | None = Field(None, description="The idempotency key.")
    parent: UUID | None = Field(None, description="Jobs that the handler of this one enqueued.")
    enqueued_after: AwareDatetime | None = None
    enqueued_before: AwareDatetime | None = None

    def filters(self, contained: dict[str, Any] | None) -> Filters:
        return Filters.of(
            state=self.state, kind=self.kind, queue=self.queue, priority=self.priority, capability=self.capability,
            key=self.key, parent=self.parent, enqueued_after=self.enqueued_after, enqueued_before=self.enqueued_before,
            input=contained,
        )  # fmt: skip


class JobsQuery(JobFilter):
    input: str | None = Field(None, description='JSON that the input contains, such as {"user_id": 1}.')
    limit: int = Field(50, ge=1, le=200)
    after: str | None = Field(None, description="The `next` of the previous page.")
    max_age: float = Field(
        0, ge=0, le=60, description="Seconds. An answer that others were given may be this old: for pages that ask often."
    )

    def contained(self) -> dict[str, Any] | None:
        if self.input is None:
            return None
        text = self.input.encode("utf-8", "replace")
        check_option("input", partial(check_json_text, what="the input filter", limit=LARGEST_FILTER), text)
        try:
            read = json.loads(self.input)
        except ValueError:
            read = None
        if not isinstance(read, dict):
            raise invalid_value("query.input", 'is not a JSON object: give one such as {"user_id": 1}')
        return read


class BulkFilter(JobFilter):
    input: dict[str, Any] | None = Field(None, description="What the input contains.")
    ids: list[UUID] | None = Field(None, max_length=MOST_IDS, description="These jobs, without other filters than `state`.")
    failure: str | None = Field(None, description="The jobs of a group of `GET /failures`, without other filters than `state`.")

    @property
    def names_jobs(self) -> bool:
        """By id or group, and not by what they are like."""
        return self.ids is not None or self.failure is not None
