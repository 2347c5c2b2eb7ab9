"""Reports what happened to runs: to other processes by wake-ups, to listeners by events, and to the log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from tenure.model.event_bus import Events
from tenure.model.events import JobSettled, JobStarted, RunAbandoned, RunLost
from tenure.model.outcomes import NextLink
from tenure.model.states import State
from tenure.model.suspensions import Suspension
from tenure.model.wakeup import Wakeup
from tenure.worker.run.abort import AbortReason
from tenure.worker.run.failure_log import FailureLevels, log_failure
from tenure.worker.run.run import Run
from tenure.worker.run.settlement import Settlement


class Announcements:
    def __init__(
        self,
        *,
        notify: Callable[[Wakeup], None],
        released: Callable[[Run], None],
        linked: Callable[[Wakeup], None],
        events: Events,
        levels: FailureLevels,
        worker: str,
    ) -> None:
        """`released(run)` is called when a job under a limit is settled, `linked(wakeup)` when this worker may claim more."""
        self._notify = notify
        self._released = released
        self._linked = linked
        self._events = events
        self._levels = levels
        self._worker = worker

    def started(self, run: Run) -> None:
        if self._events.wants(JobStarted):
            self._events.emit(JobStarted(**_names_of(run), **self._attempt_fields(run)))

    def settled(self, settlement: Settlement, watched: bool) -> None:
        if settlement.what == "crashed":  # whether it may run again is known only now
            log_failure(settlement, self._levels, self._worker)
        if settlement.state in ("retry", "scheduled", "waiting"):
            self._notify(Wakeup.job_scheduled())
        if settlement.suspension is not None:
            self._announce_waits(settlement.suspension)
        if settlement.state == "pending":
            self._notify(Wakeup.new_jobs(settlement.run.queue))  # other workers may have a free slot for it
        if settlement.next is not None:
            self._announce_link(settlement.next)
        if settlement.dependants:
            self._notify(Wakeup.chain_ended())
        if watched:
            self._notify(Wakeup.job_ended(settlement.run.job_id))
        if settlement.run.job.limit_group is not None:
            self._released(settlement.run)
        if settlement.run.was_started and self._events.wants(JobSettled):
            self._events.emit(self._settled_event(settlement))

    def wake(self, wakeup: Wakeup) -> None:
        """Everyone who listens, this worker included."""
        self._notify(wakeup)
        self._linked(wakeup)

    def abandoned(self, run: Run, reason: AbortReason) -> None:
        self._events.emit(RunAbandoned(**_names_of(run), reason=reason))

    def lost(self, run: Run, reason: AbortReason) -> None:
        """Once per run that was reported as started."""
        if run.was_started and not run.loss_reported:
            run.loss_reported = True
            self._events.emit(RunLost(**_names_of(run), reason=reason, queue=run.queue))

    def _announce_link(self, link: NextLink[Any]) -> None:
        """The workers that can claim the next link of a chain, this one included."""
        for wakeup in link.wakeups:
            self.wake(wakeup)

    def _announce_waits(self, suspension: Suspension) -> None:
        """The resolver looks whether what a workflow waits for has happened meanwhile."""
        if suspension.waits:
            self._notify(Wakeup.event_sent())
        if suspension.chains:
            self._notify(Wakeup.chain_ended())

    def _settled_event(self, settlement: Settlement) -> JobSettled:
        run = settlement.run
        return JobSettled(
            **_names_of(run),
            **self._attempt_fields(run),
            state=State(settlement.state),
            what=settlement.what,
            ran=time.monotonic() - run.started,
            error=settlement.error,
        )

    def _attempt_fields(self, run: Run) -> dict[str, Any]:
        return {"queue": run.queue, "attempt": run.attempt, "worker_id": UUID(run.worker_id), "worker": self._worker}


def _names_of(run: Run) -> dict[str, Any]:
    return {"job_id": run.job_uuid, "kind": run.kind.name, "fence": run.fence}
