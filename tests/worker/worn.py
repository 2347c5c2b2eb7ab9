"""Jobs that wear out the process they run in. Imported by the processes themselves."""

from __future__ import annotations

import os
import time

from tenure import Context, Tenure
from tenure.worker.run import slots

if os.environ.get("WEARS_SOON"):
    slots.MOST_ABANDONED = 1

app = Tenure()


@app.job(run_in="process")
def where() -> int:
    return os.getpid()


@app.job(run_in="process")
def hoard(megabytes: int) -> int:
    held = b"x" * (megabytes << 20)
    time.sleep(30)
    return len(held)


@app.job(timeout="100ms", max_attempts=1)
def ignores_abort() -> None:
    time.sleep(60)


@app.job
async def who(ctx: Context) -> str:
    return str(ctx.worker_id)
