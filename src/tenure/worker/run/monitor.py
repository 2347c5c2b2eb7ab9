"""Watches runs: deadlines, handlers that ignore an abort, and whether their jobs are still held by this worker."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable

from tenure.logs import SPELLED_OUT
from tenure.periodic import PeriodicTask
from tenure.store import claims
from tenure.store.link import Link
from tenure.worker.run.calling import ABORT_PATIENCE
from tenure.worker.run.run import Run
from tenure.worker.run.slots import Slots

log = logging.getLogger("tenure")

WATCH_EVERY = 0.5
"""Seconds between two checks of deadlines and aborted handlers."""


class RunMonitor:
    def __init__(self, slots: Slots, link: Link, check_every: float) -> None:
        """`check_every`: seconds after which a long run is checked without a particular reason."""
        self._slots = slots
        self._link = link
        self._check_every = check_every
        self._doubted: set[str] = set()
        self._last_check = time.monotonic()
        self.task = PeriodicTask("watch", self._turn)
        self.checks = PeriodicTask("check", self._check)
        """A task apart from the deadlines, because PostgreSQL may take long to answer."""

    def doubt(self, job_ids: Iterable[str]) -> None:
        """Checks these at once: this worker may have lost them."""
        self._doubted.update(job_ids)
        self.checks.wake()

    async def _turn(self) -> float:
        now = time.monotonic()
        for run in self._slots.all():
            self._look_at(run, now)
        self._slots.requeue_waiting(stuck_only=True)
        self._slots.process_pool.watch()
        return WATCH_EVERY

    async def _check(self) -> float:
        now = time.monotonic()
        doubted, self._doubted = self._doubted, set()
        if now - self._last_check >= self._check_every:
            self._last_check = now
            doubted.update(run.job_id for run in self._slots.all() if now - run.started >= self._check_every)
        await self._check_claims([run for run in self._slots.all() if run.job_id in doubted])
        return WATCH_EVERY

    def _look_at(self, run: Run, now: float) -> None:
        if self._slots.close_ended(run):
            return
        if run.deadline is not None and now > run.deadline:
            run.abort("timeout")
        if run.is_cut_off(now) and not (run.committing or run.signal.aborted):
            text = "job %s (%s) aborted: its heartbeats could not be written before its lease expired"
            log.warning(text, run.job_id, run.kind.name, extra={**run.log_fields, SPELLED_OUT: True})
            run.abort("error")
        if run.aborted_at and now - run.aborted_at > ABORT_PATIENCE + WATCH_EVERY and not run.committing:
            self._slots.abandon(run)

    async def _check_claims(self, runs: list[Run]) -> None:
        """Aborts runs whose jobs were deleted, canceled or taken over."""
        if not runs:
            return
        held = json.dumps([{"id": run.job_id, "claim_id": run.claim_id} for run in runs])
        reasons = {(row.id, row.claim_id): row.reason for row in await self._link.fetch(claims.check(held))}
        for run in runs:
            reason = reasons.get((run.job_id, run.claim_id))
            if reason is not None and not (run.settled or run.committing or run.loss_reported):
                level = logging.INFO if reason == "canceled" else logging.WARNING  # a person's decision, not a fault
                fields = {**run.log_fields, "reason": reason, SPELLED_OUT: True}
                log.log(level, "job %s (%s) aborted: %s", run.job_id, run.kind.name, reason, extra=fields)
                self._slots.lose(run, reason)
