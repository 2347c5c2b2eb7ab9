"""What the settings and the app mean for the engine of one process: what it serves, and how.

Apart from `inprocess`, because a child process of a worker needs it, and would import leaders and their duties with that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tenure.model.kinds import Registry
from tenure.settings import Settings
from tenure.worker.claim.claimer import ClaimScope, Which
from tenure.worker.engine import EngineSettings
from tenure.worker.process.pool import ProcessSettings
from tenure.worker.run.failure_log import FailureLevels


def scope_of(
    kinds: Registry,
    queues: Sequence[str] | None,
    capabilities: Sequence[str],
    which: Which = "all",
    without: Sequence[str] = (),
) -> ClaimScope:
    """If no queues are given: those of the known kinds and `default`, except those in `without`."""
    known = {kind.queue for kind in kinds.values()} | kinds.more_queues | {"default"}
    served = list(dict.fromkeys(queues)) if queues else sorted(known - {*without})
    versions = [kind.capability for kind in kinds.values() if kind.version is not None and kind.capability is not None]
    return ClaimScope(queues=served, capabilities=[*capabilities, *versions], jobs=which)


def engine_settings(settings: Settings, concurrency: int | None) -> EngineSettings:
    return EngineSettings(
        concurrency=concurrency or settings.workers.concurrency,
        poll_busy=settings.workers.poll_interval_ms / 1000,
        check_every=settings.workers.renew_every,
        next_job_delay=settings.workers.next_job_delay_ms / 1000,
        failures=FailureLevels(
            failed_attempt=getattr(logging, settings.log_failed_attempt.upper()),
            dead_letter=getattr(logging, settings.log_dead_letter.upper()),
        ),
        process_pool=ProcessSettings(
            max_tasks=settings.workers.process_max_tasks, memory_mb=settings.workers.process_memory_mb or None
        ),
    )
