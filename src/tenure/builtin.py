"""Jobs that every worker runs besides those of its app."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tenure.client.bulk import BULK, Action, BulkAction, filters_of_json
from tenure.client.runtime import ClientRuntime
from tenure.model.definitions import define
from tenure.model.errors import ConfigError
from tenure.model.kinds import Registry
from tenure.model.outcomes import Fail
from tenure.worker.run.context import Context


def add_builtin_kinds(kinds: Registry, runtime: ClientRuntime) -> None:
    """May be called again."""
    if BULK in kinds.served:
        return

    async def bulk(
        ctx: Context,
        action: Action,
        filter: dict[str, Any],  # noqa: A002 - the name in the API
        *,
        reason: str | None = None,
        by: str | None = None,
        expected: int | None = None,
    ) -> dict[str, int] | Fail:
        """Cancels, retries, replays or deletes all jobs that match a filter."""
        try:
            what = BulkAction(action=action, filters=filters_of_json(filter), reason=reason, by=by)
        except ConfigError as error:
            return Fail(str(error))
        matched = changed = 0
        async for matched, changed in what.carry_out(runtime):
            ctx.progress(min(99.0, 100 * matched / expected) if expected else 0.0, f"{changed} of {matched} jobs changed")
        return {"matched": matched, "changed": changed}

    # Repeating it is safe, and it may take as long as it takes.
    kind = define(bulk, context_type=Context, default_retry=runtime.default_retry, name=BULK, timeout=None, max_attempts=5)
    kinds.add(replace(kind, builtin=True))
