"""The settings of workers: the block `[workers]`, and one block for each further pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SHARED = ("lease_timeout_seconds", "renew_interval_seconds", "scale_interval_ms", "health_file", "metrics_port", "name")
"""Settings of `[workers]` that apply to all pools of a supervisor."""

AT_LEAST_ONE = ("concurrency", "default_count", "max_count", "process_max_tasks", "poll_interval_ms")
AT_LEAST_NONE = (
    "process_memory_mb",
    "next_job_delay_ms",
    "recycle_after_jobs",
    "recycle_above_mb",
    "restart_limit",
)


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """The block `[workers]`."""

    default_count: int = 2
    """Processes that run handlers; `tenure up` never runs fewer."""

    max_count: int = 8
    """The most processes that `tenure up` starts when jobs wait. Depends on the machine; at least `default_count`."""

    concurrency: int = 10
    """Jobs that one process runs at a time."""

    queues: tuple[str, ...] = ()
    """Queues to serve. Empty: those of the app's jobs, except those that other pools name."""

    capabilities: tuple[str, ...] = ()
    """What this machine offers. It does not run jobs that require other capabilities."""

    lease_timeout_seconds: float = 15.0
    """How long a worker keeps its jobs without renewing its lease. Lower: the jobs of a dead machine are requeued sooner.
    Higher: tolerates slower networks."""

    renew_interval_seconds: float = 0.0
    """How often that lease is renewed. 0: a third of `lease_timeout_seconds`."""

    grace_seconds: float = 25.0
    """How long running jobs may continue after SIGTERM before they are requeued. Kubernetes kills after 30."""

    stall_limit_seconds: float = 600.0
    """A process whose event loop has not run for this long is stalled, and is killed. Handlers that block the loop on
    purpose belong in a thread."""

    poll_interval_ms: int = 250
    """The longest wait between two polls while there are jobs. When idle it grows to 2 s; notifications are faster."""

    next_job_delay_ms: int = 0
    """A pause between the end of a job and the claim of the next job for its slot."""

    process_max_tasks: int = 1000
    """Jobs of `run_in="process"` that one process runs before it is replaced."""

    process_memory_mb: int = 0
    """A process of `run_in="process"` that uses more is killed, and its job has crashed. 0: no limit."""

    scale_interval_ms: int = 1000
    """How often `tenure up` checks whether there are enough processes."""

    scale_wait_seconds: float = 5.0
    """If a job has waited longer, the next check adds a process, up to `max_count`."""

    scale_down_seconds: float = 30.0
    """How long fewer processes must have been enough before one is removed. With a low value processes start and end often."""

    drain_seconds: float = 3600.0
    """How long a process that is replaced or removed may continue its jobs before they are requeued. It claims no jobs
    meanwhile, so a long time does no harm; `grace_seconds` applies to a shutdown."""

    recycle_after_jobs: int = 0
    """A process that has run this many jobs is replaced, to bound the effect of leaks. 0: never."""

    recycle_after_seconds: float = 0.0
    """A process of this age is replaced. 0: never."""

    recycle_above_mb: int = 0
    """A process that uses more memory is replaced; it finishes its jobs. 0: never."""

    restart_limit: int = 20
    """If this many processes of a pool in a row died within 10 s of their start, and no older one is left, the supervisor
    exits with code 9. 0: never."""

    health_file: str | None = None
    """A file that is touched while the supervisor is alive, and FILE.ready while leases are renewed: for `tenure health`."""

    metrics_port: str | None = None
    """Where the supervisor serves metrics for Prometheus: a port of this machine's loopback address, or HOST:PORT."""

    name: str | None = None
    """The name of this worker in `tenure workers`, events and logs. Further processes are NAME-2, NAME-3. Default: host:pid."""

    @property
    def renew_every(self) -> float:
        # Two renewals may fail before the lease is lost.
        return self.renew_interval_seconds or self.lease_timeout_seconds / 3


def worker_settings(own: Mapping[str, Any], inherited: Mapping[str, Any] | None = None) -> WorkerSettings:
    values = {**(inherited or {}), **own}
    if inherited is not None and "queues" not in own:
        values.pop("queues", None)
    if "default_count" in values:
        values.setdefault("max_count", max(WorkerSettings.max_count, values["default_count"]))
    return WorkerSettings(**values)


def contradictions(block: str, own: Mapping[str, Any], inherited: Mapping[str, Any] | None = None) -> list[str]:
    found = []
    if own.get("lease_timeout_seconds", 15) < 3:
        found.append(f"{block}.lease_timeout_seconds must be at least 3: a short delay would end a shorter lease")
    lease, renew = own.get("lease_timeout_seconds", 15), own.get("renew_interval_seconds", 0)
    if renew and not 0.5 <= renew <= lease / 2:
        found.append(
            f"{block}.renew_interval_seconds is {renew:g}, but must be from 0.5 to half of lease_timeout_seconds ({lease / 2:g}),"
            " so that one renewal may fail; 0 is a third of it"
        )
    if own.get("scale_interval_ms", 1000) < 100:
        found.append(f"{block}.scale_interval_ms must be at least 100: each check queries PostgreSQL")
    found += [f"{block}.{name} must be at least 1" for name in AT_LEAST_ONE if own.get(name, 1) < 1]
    found += [f"{block}.{name} must be 0 (no limit) or more" for name in AT_LEAST_NONE if own.get(name, 0) < 0]
    values = {**(inherited or {}), **own}
    least, most = values.get("default_count", WorkerSettings.default_count), values.get("max_count")
    if most is not None and most < least and {"default_count", "max_count"} & own.keys():
        found.append(f"{block}.max_count is {most}, but default_count is {least}: raise the one or lower the other")
    return found
