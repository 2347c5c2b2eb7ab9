"""A worker in a thread of its own, for tests with or without an event loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tenure.app import Tenure
from tenure.client.portal import Portal
from tenure.inprocess import InProcessWorker


@contextmanager
def running_worker(
    app: Tenure, *, queues: Sequence[str] | None = None, concurrency: int | None = None
) -> Iterator[InProcessWorker]:
    """Runs a worker and a leader in a thread while the block lasts. Jobs that still run at its end are requeued."""
    portal = Portal()

    async def start() -> InProcessWorker:
        worker = app.worker(queues=queues, concurrency=concurrency, grace=0)
        await worker.start()
        return worker

    worker = portal.run(start())
    try:
        yield worker
    finally:
        portal.run(worker.stop())
        portal.close()
