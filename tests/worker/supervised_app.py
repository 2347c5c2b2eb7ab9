"""An app for `tenure worker`: copied as `jobs.py` into a project folder, never imported by a test."""

import json
import os
from dataclasses import asdict
from pathlib import Path

from tenure import Context, Event, LeaderElected, Tenure, WorkerDied, WorkerStarted, WorkerStopped

app = Tenure()
SEEN = Path("events").absolute()


@app.on(LeaderElected, WorkerDied, WorkerStarted, WorkerStopped)
def write_down(event: Event) -> None:
    entry = {"event": type(event).__name__, "pid": os.getpid(), **asdict(event)}
    with SEEN.open("a") as file:
        file.write(json.dumps(entry, default=str) + "\n")


@app.job
async def child() -> None: ...


@app.job
async def on_loop(ctx: Context) -> str:
    return str((await child.enqueue()).id)


@app.job
def in_thread(ctx: Context) -> str:
    return str(child.enqueue_sync().id)


@app.job(run_in="process")
def in_process(ctx: Context) -> str:
    return str(child.enqueue_sync().id)


@app.job(run_in="process")
async def in_process_async(ctx: Context) -> str:
    return str((await child.enqueue()).id)
