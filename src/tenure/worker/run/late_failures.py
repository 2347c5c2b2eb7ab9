"""Reports handlers that fail after their own session has completed the job: it stays completed."""

from __future__ import annotations

import logging
from typing import Any

from tenure.logs import SPELLED_OUT
from tenure.model.errors import StoreUnavailable
from tenure.model.event_bus import Events
from tenure.model.events import RunFailedAfterCompletion
from tenure.store import late_outputs
from tenure.store.faults import Refused
from tenure.store.link import Link
from tenure.worker.run.settlement import Settlement

log = logging.getLogger("tenure")

_ENDED = {
    "failed": "failed",
    "timed_out": "ran into its timeout",
    "snoozed": "asked for a snooze",
    "canceled": "asked to cancel it",
    "continued": "asked to continue its chain",
    "requeued": "was stopped by the worker's shutdown",
    "crashed": "lost its process",
}


class LateFailures:
    def __init__(self, link: Link, events: Events) -> None:
        self._link = link
        self._events = events

    async def report(self, settlement: Settlement) -> None:
        """Logs it, emits an event and keeps it with the job. `settlement` is what the job's outcome would have been."""
        run = settlement.run
        ended = _ENDED.get(settlement.what, settlement.what)
        text = settlement.error or f"the handler {ended}"
        log.error(
            "job %s (%s, attempt %d) was completed by its own transaction, and then its handler %s; the job stays completed",
            run.job_id,
            run.kind.name,
            run.attempt,
            ended,
            exc_info=settlement.cause,
            extra={**run.log_fields, SPELLED_OUT: True},
        )
        names: dict[str, Any] = {"job_id": run.job_uuid, "kind": run.kind.name, "fence": run.fence}
        self._events.emit(RunFailedAfterCompletion(**names, what=settlement.what, error=text))
        try:
            await self._link.fetch(late_outputs.note_late_failure(run.job_id, run.claim_id, text))
        except (StoreUnavailable, Refused) as fault:
            fields = {**run.log_fields, "error": str(fault)}
            log.warning("the failure of a handler after its job was completed could not be kept with the job", extra=fields)
