from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tenure import Tenure
from tenure.inprocess import InProcessWorker


@asynccontextmanager
async def serving(app: Tenure, **options: Any) -> AsyncIterator[InProcessWorker]:
    """Like `app.running()`, but what still runs at the end is requeued at once."""
    worker = app.worker(grace=0, **options)
    await worker.start()
    try:
        yield worker
    finally:
        await worker.stop()
