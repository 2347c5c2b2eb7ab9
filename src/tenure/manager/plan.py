"""The pools that a supervisor runs, from flags and settings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from tenure.manager.policy import Bounds
from tenure.manager.spec import ChildSpec
from tenure.model.errors import ConfigError
from tenure.settings import DEFAULT_POOL, Settings
from tenure.worker_settings import WorkerSettings


@dataclass(frozen=True, kw_only=True)
class PoolPlan:
    """One pool: what its processes serve, and how many of them there may be."""

    spec: ChildSpec
    default_count: int
    max_count: int
    scale_wait: float = 5.0
    patience: int = 30
    restart_limit: int = 0

    @property
    def name(self) -> str:
        return self.spec.pool

    def bounds(self, concurrency: int) -> Bounds:
        return Bounds(
            default_count=self.default_count,
            max_count=self.max_count,
            concurrency=concurrency,
            target_wait=self.scale_wait,
            patience=self.patience,
        )


def one_pool(spec: ChildSpec, settings: Settings, least: int | None = None, most: int | None = None) -> list[PoolPlan]:
    """From the flags, else from `[workers]`. If only the number of processes is given, it is also the maximum."""
    block = settings.workers
    least, most = least or min(block.default_count, most or block.default_count), most or least or block.max_count
    if most < least:
        raise ConfigError(f"--max-processes is {most}, which is less than --processes ({least}): raise it, or lower --processes")
    return [_plan(spec, block, least, most)]


def pools_of(settings: Settings, spec: ChildSpec, only: Collection[str] = ()) -> list[PoolPlan]:
    """The pools of `[workers]` and of each `[workers.NAME]`, restricted to `only` if that is given."""
    blocks = {DEFAULT_POOL: settings.workers, **settings.pools}
    if unknown := [name for name in only if name not in blocks]:
        raise ConfigError(f"there is no pool {unknown[0]!r}: use one of {', '.join(sorted(blocks))}, or add it to tenure.toml")
    plans = []
    for name, block in blocks.items():
        if not only or name in only:
            # A queue that one pool names is served by that pool only, even if it runs on another machine.
            named = sorted({queue for other, one in blocks.items() if other != name for queue in one.queues})
            plans.append(_plan(replace(spec, pool=name, without=named), block, block.default_count, block.max_count))
    return plans


def _plan(spec: ChildSpec, block: WorkerSettings, least: int, most: int) -> PoolPlan:
    return PoolPlan(
        spec=spec,
        default_count=least,
        max_count=most,
        scale_wait=block.scale_wait_seconds,
        patience=max(1, round(block.scale_down_seconds * 1000 / block.scale_interval_ms)),
        restart_limit=block.restart_limit,
    )
