"""Follows what viewers subscribe to: one LISTEN and one batched look-up per process, however many viewers there are.

Workers notify us of jobs in `tenure.watches`. What they do not notify of (a claim), and what is lost on the way, is found by
looking at all followed jobs once a second. A job is looked at no more than ten times a second.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from uuid import UUID

from tenure.client.json_values import to_json_value
from tenure.client.status import JobStatus
from tenure.model import wakeup as wakeups
from tenure.model.errors import StoreUnavailable
from tenure.model.wakeup import Wakeup
from tenure.periodic import FOREVER, PeriodicTask
from tenure.store import live
from tenure.store.faults import Refused
from tenure.store.live import ShownRow
from tenure.store.query import Fetch
from tenure.web.fleet_stats import FleetCounts, FleetStats
from tenure.web.job_views import LARGEST_SHOWN
from tenure.web.live.fleet_message import overview
from tenure.web.live.flows import FLOWS, FlowReader
from tenure.web.live.followed import FollowedJob, Viewer, check_version, finite, version_of
from tenure.web.live.topics import LiveTopic, Subject
from tenure.web.problems import Problem
from tenure.web.security.principal import Principal
from tenure.web.security.redaction import Redaction
from tenure.web.web_session import WebSession

GAP = 0.1
"""Seconds between two look-ups: a job's progress is sent at most ten times a second."""

POLL = 1.0
"""Seconds after which all followed jobs are looked at."""

WATCHED_FOR = 900.0
"""Seconds for which workers notify us of a job; renewed in half that time."""

LARGEST_LOOKUP = 1000  # jobs in a statement
LARGEST_READ = 200  # whole jobs in a statement
MOST_CONNECTIONS = 100  # of one principal, in each process
MOST_LOCAL = 10_000  # of a server without tokens
MOST_TOPICS = 1000  # of one connection
MOST_ACCOUNT_TOPICS = 20_000  # of all connections of one principal, in each process


class LiveHub:
    def __init__(self, session: WebSession, read: Fetch, stats: FleetStats, flows: FlowReader, redaction: Redaction) -> None:
        self._session = session
        self._read = read
        self._stats = stats
        self._flows = flows
        self._redaction = redaction
        self._jobs: dict[UUID, FollowedJob] = {}
        self._others: dict[LiveTopic, set[Viewer]] = {}
        self._texts: dict[LiveTopic, str] = {}
        """What was last sent of topics that are not jobs."""
        self._counts: FleetCounts | None = None
        """Of which it was made."""
        self._changed: set[UUID] = set()
        self._connections: dict[str, int] = {}
        self._topics: Counter[str] = Counter()
        """How many are followed, by account."""
        self._viewers: set[Viewer] = set()
        self._looked_at = self._polled_at = self._flows_looked_at = 0.0
        self._beat = PeriodicTask("live", self._turn)
        self._flow_beat = PeriodicTask("live flows", self._flow_turn)
        self._tasks: list[asyncio.Task[None]] = []
        self._unsubscribe: Callable[[], None] = _nothing

    # Viewers

    @contextmanager
    def viewing(self, principal: Principal) -> Iterator[Viewer]:
        """A viewer for as long as its connection is open."""
        who = self.check_room(principal)
        self._connections[who] = self._connections.get(who, 0) + 1
        viewer = Viewer(principal)
        self._viewers.add(viewer)
        self._start()
        try:
            yield viewer
        finally:
            self._viewers.discard(viewer)
            for topic in list(viewer.topics):
                self.unsubscribe(viewer, topic)
            self._connections[who] -= 1
            if not self._connections[who]:
                del self._connections[who]

    def check_room(self, principal: Principal) -> str:
        """Raises if the principal has too many connections. Returns under which name they are counted."""
        who = principal.account
        most = MOST_LOCAL if principal.via == "local" else MOST_CONNECTIONS
        if self._connections.get(who, 0) >= most:
            raise Problem(429, "too-many-connections", f"{principal.name!r} has {most} open connections: close some")
        return who

    def subscribe(self, viewer: Viewer, topic: LiveTopic, seen: str | None = None) -> None:
        """The current state is sent soon, unless it is the version that the viewer has seen; then every change."""
        topic.check_access(viewer.principal)
        check_version(seen)
        if topic not in viewer.topics:
            self._add(viewer, topic)
        if seen is not None and topic.subject is Subject.JOB:
            viewer.seen[topic] = seen
        viewer.gone.discard(topic)
        if topic.subject is Subject.JOB:
            followed = self._jobs.setdefault(topic.job_id, FollowedJob(topic))
            followed.viewers.add(viewer)
            if followed.read:
                followed.deliver(viewer)
            if followed.status is None:
                self._changed.add(topic.job_id)
                self._beat.wake()
        else:
            self._others.setdefault(topic, set()).add(viewer)
            if topic in self._texts:
                viewer.outbox.put(str(topic), self._texts[topic])
            (self._flow_beat if topic.subject in FLOWS else self._beat).wake()

    def _add(self, viewer: Viewer, topic: LiveTopic) -> None:
        account = viewer.principal.account
        if len(viewer.topics) >= MOST_TOPICS:
            raise Problem(429, "too-many-topics", f"a connection follows at most {MOST_TOPICS} topics: open another one")
        if self._topics[account] >= MOST_ACCOUNT_TOPICS and viewer.principal.via != "local":
            raise Problem(429, "too-many-topics", f"{viewer.principal.name!r} follows {MOST_ACCOUNT_TOPICS} topics: follow fewer")
        viewer.topics.add(topic)
        self._topics[account] += 1

    def unsubscribe(self, viewer: Viewer, topic: LiveTopic) -> None:
        if topic in viewer.topics:
            viewer.topics.discard(topic)
            self._topics[viewer.principal.account] -= 1
            if not self._topics[viewer.principal.account]:
                del self._topics[viewer.principal.account]
        viewer.seen.pop(topic, None)
        viewer.gone.discard(topic)
        viewer.outbox.drop(str(topic))
        if topic.subject is Subject.JOB:
            followed = self._jobs.get(topic.job_id)
            if followed is not None:
                followed.viewers.discard(viewer)
                if not followed.viewers:
                    del self._jobs[topic.job_id]
        elif topic in self._others:
            self._others[topic].discard(viewer)
            if not self._others[topic]:
                del self._others[topic]
                self._texts.pop(topic, None)
                self._flows.forget(topic)

    async def close(self) -> None:
        """Every connection ends."""
        self._unsubscribe()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for viewer in self._viewers:
            viewer.outbox.close()

    # Looking

    def _start(self) -> None:
        if not self._tasks:
            self._unsubscribe = self._session.on_wakeup(self._on_wakeup)
            self._tasks = [asyncio.create_task(beat.run()) for beat in (self._beat, self._flow_beat)]

    def _on_wakeup(self, wakeup: Wakeup) -> None:
        if wakeup == Wakeup.missed():
            self._polled_at = 0.0
            self._beat.wake()
        elif wakeup.topic in (wakeups.Topic.ENDED, wakeups.Topic.PROGRESS):
            with suppress(ValueError):
                job_id = UUID(wakeup.subject)
                if job_id in self._jobs:
                    self._changed.add(job_id)
                    self._beat.wake()

    async def _turn(self) -> float:
        await asyncio.sleep(max(0.0, self._looked_at + GAP - time.monotonic()))
        self._looked_at = time.monotonic()
        polling = self._looked_at - self._polled_at >= POLL
        changed, self._changed = self._changed, set()
        try:
            now = self._looked_at
            await self._look([id_ for id_, job in self._jobs.items() if id_ in changed or (polling and job.is_due(now))])
            await self._look_at_fleet()
        except BaseException:
            self._polled_at = 0.0  # the next turn looks at everything
            self._changed |= changed
            raise
        if polling:
            self._polled_at = self._looked_at
        return POLL if self._jobs or self._others else FOREVER

    async def _look(self, ids: Sequence[UUID]) -> None:
        await self._watch(ids)
        for start in range(0, len(ids), LARGEST_LOOKUP):
            asked = ids[start : start + LARGEST_LOOKUP]
            found = {row.id: finite(row) for row in await self._read(live.find_versions(asked))}
            kept = {job_id: job for job_id in asked if (job := self._jobs.get(job_id)) is not None}
            await self._publish(
                [id_ for id_, job in kept.items() if id_ in found and (not job.read or found[id_] != job.version)]
            )
            for job_id, job in kept.items():
                if job_id in found:
                    job.found()
                else:
                    self._miss(job)

    async def _publish(self, ids: Sequence[UUID]) -> None:
        for start in range(0, len(ids), LARGEST_READ):
            asked = ids[start : start + LARGEST_READ]
            rows = {row.job.id: row for row in await self._read(live.find_shown(asked, LARGEST_SHOWN))}
            for job_id in asked:
                followed = self._jobs.get(job_id)
                if followed is not None:
                    self._send_job(followed, rows.get(job_id))

    def _miss(self, followed: FollowedJob) -> None:
        if not followed.read or followed.status is not None:
            self._send_job(followed, None)
        followed.missed(self._looked_at, POLL)

    def _send_job(self, followed: FollowedJob, row: ShownRow | None) -> None:
        """None: there is no such job."""
        if row is None:
            followed.update(None)
        else:
            job = JobStatus.from_row(row.job)
            followed.update(self._redaction.job(job), version=version_of(job), omitted=row.omitted)
        for viewer in list(followed.viewers):
            followed.deliver(viewer)

    async def _watch(self, ids: Sequence[UUID]) -> None:
        """Before the jobs are read: a worker that changes one afterwards will notify us."""
        now = time.monotonic()
        due = [
            job_id
            for job_id in ids
            if (job := self._jobs.get(job_id)) is not None and (job.watched_at is None or now - job.watched_at > WATCHED_FOR / 2)
        ]
        for start in range(0, len(due), LARGEST_LOOKUP):
            asked = due[start : start + LARGEST_LOOKUP]
            try:
                watched = await self._session.fetch(live.watch(asked, WATCHED_FOR))
            except Refused:
                return  # this account may only read: we poll
            except StoreUnavailable as error:
                if error.cause != "read_only":
                    raise
                return
            for job_id in watched:
                if job_id in self._jobs:
                    self._jobs[job_id].watched_at = now

    async def _flow_turn(self) -> float:
        """Apart from jobs and the fleet: one chain may take as long to read as a thousand jobs."""
        await asyncio.sleep(max(0.0, self._flows_looked_at + GAP - time.monotonic()))
        self._flows_looked_at = time.monotonic()
        topics = [topic for topic in self._others if topic.subject in FLOWS]
        for start in range(0, len(topics), LARGEST_LOOKUP):
            asked = [topic for topic in topics[start : start + LARGEST_LOOKUP] if topic in self._others]
            for topic, text in (await self._flows.changed(asked, self._texts)).items():
                self._send(topic, text)
                if topic not in self._others:
                    self._flows.forget(topic)
        return POLL if topics else FOREVER

    async def _look_at_fleet(self) -> None:
        topics = [topic for topic in self._others if topic.subject not in FLOWS]
        if not topics:
            return
        counts = await self._stats.counts.get()
        changed, self._counts = counts is not self._counts, counts
        queues = {queue.name: queue for queue in counts.queues}
        for topic in topics:
            if not changed and topic in self._texts:
                continue
            if topic.subject is Subject.QUEUE:
                content = {"queue": asdict(queues[topic.name]) if topic.name in queues else None}
            else:
                content = overview(counts)
            self._send(topic, json.dumps({"type": topic.subject.value, "topic": str(topic), **content}, default=to_json_value))

    def _send(self, topic: LiveTopic, text: str) -> None:
        if topic in self._others and text != self._texts.get(topic):
            self._texts[topic] = text
            for viewer in list(self._others[topic]):
                viewer.outbox.put(str(topic), text)


def _nothing() -> None:
    """There is no subscription yet."""
