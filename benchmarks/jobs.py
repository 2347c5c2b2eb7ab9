"""The work that is measured: nothing, with an ordinary payload; and a handler that says when it began."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.payload import PAYLOAD
from tenure import Tenure
from tenure.client.job import Call, Job

__all__ = ["PAYLOAD", "Workload", "app", "workload"]


@dataclass(frozen=True)
class Workload:
    app: Tenure
    noop: Job[..., ..., Any, None]
    stamp: Job[..., ..., Any, int]

    def calls(self, count: int) -> Iterator[Call[None]]:
        return (self.noop.call(**PAYLOAD) for _ in range(count))


def workload(dsn: str | None) -> Workload:
    app = Tenure(dsn)

    @app.job
    async def noop(user_id: int, template: str, to: str, n: int, pad: str) -> None:
        pass

    @app.job
    async def stamp(sent: int) -> int:  # noqa: ARG001 - stays in the input, to be compared
        """`sent` was read from the same clock, just before the enqueue."""
        return time.time_ns()

    return Workload(app, noop, stamp)


app = workload(None).app
