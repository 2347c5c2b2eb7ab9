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
from tenure.web.live.topics import LiveTopic
from tenure.web.problems import invalid_value
from tenure.web.security.principal import Principal

LONGEST_GAP = 30.0
"""Seconds between two looks at a job that does not exist."""


LONGEST_VERSION = 64  # characters


@dataclass(slots=True, eq=False)
class Viewer:
    """A connection that follows topics."""

    principal: Principal
    outbox: Outbox = field(default_factory=Outbox)
    topics: set[LiveTopic] = field(default_factory=set)
    seen: dict[LiveTopic, str] = field(default_factory=dict)
    """The versions of jobs that it had before a reconnect: they are not sent again."""
    gone: set[LiveTopic] = field(default_factory=set)
    """Jobs that were reported to it as gone, and that it has not been sent since."""


@dataclass(slots=True, eq=False)
class FollowedJob:
    topic: LiveTopic
    viewers: set[Viewer] = field(default_factory=set)
    version: VersionRow | None = None
    """As last read. None: not read yet, or there is no such job."""
    status: JobStatus | None = None
    read: bool = False
    watched_at: float | None = None
    """When its worker was last asked to notify us."""
    look_at: float = 0.0
    """When it is looked at again, if nothing is heard of it before."""
    _misses: int = 0
    """Looks in a row that have not found it."""
    _existed: bool = False
    _omitted: bool = False
    _texts: dict[bool, str] = field(default_factory=dict)
    """The message: the whole job, and the part that a tracker token shows."""

    @property
    def settled(self) -> bool:
        """In history, where it does not change any more, or deleted. One that was never seen may still be committed."""
        return self._existed if self.status is None else self.status.state.finished

    def is_due(self, now: float) -> bool:
        return not self.settled and now >= self.look_at

    def missed(self, now: float, gap: float) -> None:
        """Not found: the gap to the next look doubles, because a viewer may name any number of ids that do not exist."""
        self.look_at = now + min(LONGEST_GAP, gap * 2**self._misses)
        self._misses = min(self._misses + 1, 30)

    def found(self) -> None:
        self._misses, self.look_at = 0, 0.0

    def update(self, status: JobStatus | None, *, version: VersionRow | None = None, omitted: bool = False) -> None:
        """`version`: of the job itself, if secrets are hidden in `status`."""
        self._omitted = omitted
        self._existed = self._existed or status is not None
        self.status, self.read = status, True
        self.version = version_of(status) if version is None and status is not None else version
        self._texts.clear()

    def deliver(self, viewer: Viewer) -> None:
        known = viewer.seen.pop(self.topic, None)
        if self.status is None or not viewer.principal.sees(kind=self.status.kind, queue=self.status.queue):
            # Once: of a job that the viewer may not see, it would otherwise learn of every change.
            if self.topic not in viewer.gone:
                viewer.gone.add(self.topic)
                viewer.outbox.put(str(self.topic), _gone(self.topic))
            return
        viewer.gone.discard(self.topic)
        if known != self.digest:
            viewer.outbox.put(str(self.topic), self._text(whole=viewer.principal.job_id is None))

    @property
    def digest(self) -> str:
        """The same in every process, so that a viewer may reconnect to another one. Of what is shown: the hash of a hidden value
        would tell whether a guess is right."""
        shown = None if self.status is None else version_of(self.status)
        return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]

    def _text(self, *, whole: bool) -> str:
        text = self._texts.get(whole)
        if text is None:
            assert self.status is not None
            omitted = self._omitted
            view = job_view(self.status, omitted=omitted) if whole else tracker_view(self.status, omitted=omitted)
            message = {"type": "job", "topic": str(self.topic), "version": self.digest, "job": view}
            text = self._texts[whole] = json.dumps(message, separators=(",", ":"))
        return text


def check_version(seen: str | None, where: str = "versions") -> None:
    """Ours have 16 characters. Longer ones would be kept until the job is read."""
    if seen is not None and len(seen) > LONGEST_VERSION:
        raise invalid_value(where, f"has more than {LONGEST_VERSION} characters: give the version that was sent, or leave it out")


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


def _gone(topic: LiveTopic) -> str:
    """Also for jobs that the viewer may not see: it does not learn that they exist."""
    return json.dumps({"type": "gone", "topic": str(topic), "id": str(UUID(topic.name))})
