"""Viewers, and the jobs that they follow."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from uuid import UUID

from tenure.client.status import JobStatus
from tenure.store.live import VersionRow
from tenure.web.job_views import job_view, tracker_view
from tenure.web.live.outbox import Outbox
from tenure.web.live.topics import Topic
from tenure.web.security.principal import Principal


@dataclass(slots=True, eq=False)
class Viewer:
    """A connection that follows topics."""

    principal: Principal
    outbox: Outbox = field(default_factory=Outbox)
    topics: set[Topic] = field(default_factory=set)
    seen: dict[Topic, str] = field(default_factory=dict)
    """The versions that it had before a reconnect: they are not sent again."""


@dataclass(slots=True, eq=False)
class FollowedJob:
    topic: Topic
    viewers: set[Viewer] = field(default_factory=set)
    version: VersionRow | None = None
    """As last read. None: not read yet, or there is no such job."""
    status: JobStatus | None = None
    read: bool = False
    watched_at: float | None = None
    """When its worker was last asked to notify us."""
    _omitted: bool = False
    _texts: dict[bool, str] = field(default_factory=dict)
    """The message: the whole job, and the part that a tracker token shows."""

    @property
    def settled(self) -> bool:
        """In history, where it does not change any more."""
        return self.status is not None and self.status.state.finished

    def update(self, status: JobStatus | None, *, omitted: bool = False) -> None:
        self._omitted = omitted
        self.status, self.version, self.read = status, None if status is None else version_of(status), True
        self._texts.clear()

    def deliver(self, viewer: Viewer) -> None:
        known = viewer.seen.pop(self.topic, None)
        if self.status is None or not viewer.principal.sees(kind=self.status.kind, queue=self.status.queue):
            viewer.outbox.put(str(self.topic), _gone(self.topic))
        elif known != self.digest:
            viewer.outbox.put(str(self.topic), self._text(whole=viewer.principal.job_id is None))

    @property
    def digest(self) -> str:
        """The same in every process, so that a viewer may reconnect to another one."""
        return hashlib.sha256(repr(self.version).encode()).hexdigest()[:16]

    def _text(self, *, whole: bool) -> str:
        text = self._texts.get(whole)
        if text is None:
            assert self.status is not None
            omitted = self._omitted
            view = job_view(self.status, omitted=omitted) if whole else tracker_view(self.status, omitted=omitted)
            message = {"type": "job", "topic": str(self.topic), "version": self.digest, "job": view}
            text = self._texts[whole] = json.dumps(message, separators=(",", ":"))
        return text


def version_of(job: JobStatus) -> VersionRow:
    return VersionRow(
        id=job.id,
        state=job.state.value,
        attempt=job.attempt,
        fence=job.fence,
        run_at=job.run_at,
        progress_percent=job.progress_percent,
        progress_message=job.progress_message,
    )


def finite(row: VersionRow) -> VersionRow:
    """As a status shows it: NaN, which SQL can write, would differ from itself."""
    return row if math.isfinite(row.progress_percent) else row._replace(progress_percent=0.0)


def _gone(topic: Topic) -> str:
    """Also for jobs that the viewer may not see: it does not learn that they exist."""
    return json.dumps({"type": "gone", "topic": str(topic), "id": str(UUID(topic.name))})
