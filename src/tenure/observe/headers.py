"""The headers of a job, in which the context of a trace reaches the process that runs it: `meta["headers"]`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tenure.client.calls import Call
from tenure.model.payloads import plain_json
from tenure.worker.run.context import Context

HEADERS = "headers"


def headers_of(meta: Any) -> dict[str, str]:
    """Empty if the job was enqueued without any."""
    found = meta.get(HEADERS) if isinstance(meta, Mapping) else None
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, Mapping) else {}


def with_headers(call: Call[Any], headers: Mapping[str, str]) -> Call[Any]:
    """Those that the caller has set already are kept."""
    existing = headers_of(json.loads(call.meta)) if call.meta is not None else {}
    return call.with_meta(**{HEADERS: {**headers, **existing}})


def hand_over(ctx: Context, headers: Mapping[str, str]) -> None:
    """Replaces the headers of this run, for the process in which its handler runs. What is stored does not change."""
    run = ctx._run  # noqa: SLF001 - not part of the public API
    meta = {**ctx.meta, HEADERS: {**headers_of(ctx.meta), **headers}}
    run.job = run.job._replace(meta=plain_json(meta, what="the meta of a job"))
