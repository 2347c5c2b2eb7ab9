"""The app that the workers under test load: copied as `jobs.py` into the project folder, never imported by a test.

Every run writes what it does into the run_log, a file to which all processes append, so that a test also sees runs whose
outcome was refused. The jobs `until_released` run until the test makes the file `release`.
"""

import asyncio
import json
import os
import signal
import subprocess
import time
from pathlib import Path

from tenure import Context, Retry, Tenure

app = Tenure()
RUN_LOG, RELEASE, SECOND_RELEASE = (Path(name).absolute() for name in ("run_log", "release", "second_release"))
LOOK_EVERY = 0.02


def note(ctx: Context, event: str, **more: object) -> None:
    entry = {
        "event": event,
        "job": str(ctx.job_id),
        "kind": ctx.kind,
        "attempt": ctx.attempt,
        "fence": ctx.fence,
        "worker": str(ctx.worker_id),
        "pid": os.getpid(),
        "at": time.monotonic(),
        **more,
    }
    run_log = os.open(RUN_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(run_log, json.dumps(entry).encode() + b"\n")
    os.close(run_log)


async def released(file: Path = RELEASE) -> None:
    while not file.exists():  # noqa: ASYNC110, ASYNC240 - opened by another process
        await asyncio.sleep(LOOK_EVERY)


@app.job
async def quick(ctx: Context) -> str:
    note(ctx, "start")
    return "done"


@app.job
async def until_released(ctx: Context) -> str:
    note(ctx, "start")
    try:
        await released()
    except asyncio.CancelledError:
        note(ctx, "aborted", reason=ctx.signal.reason)
        raise
    note(ctx, "end")
    return "done"


@app.job
async def patient(ctx: Context) -> str:
    """Continues after those that wait for the first file."""
    note(ctx, "start")
    await released(SECOND_RELEASE)
    return "done"


@app.job
async def tidies_up(ctx: Context) -> None:
    """Needs some awaits after it was cancelled."""
    note(ctx, "start")
    try:
        await released()
    finally:
        await asyncio.sleep(0.3)
        note(ctx, "tidied", reason=ctx.signal.reason)


@app.job
def until_released_in_thread(ctx: Context) -> str:
    note(ctx, "start")
    while not RELEASE.exists():
        if ctx.signal.aborted:
            note(ctx, "aborted", reason=ctx.signal.reason)
            ctx.signal.check()
        time.sleep(LOOK_EVERY)
    return "done"


@app.job
def deaf_thread(ctx: Context) -> None:
    note(ctx, "start")
    while not RELEASE.exists():
        time.sleep(LOOK_EVERY)


@app.job
async def blocks_loop(ctx: Context, seconds: float) -> str:
    note(ctx, "start")
    time.sleep(seconds)  # noqa: ASYNC251 - the point of it
    return "done"


@app.job
async def blocks_loop_for_long(ctx: Context) -> None:
    note(ctx, "start")
    while not RELEASE.exists():
        time.sleep(LOOK_EVERY)  # noqa: ASYNC251


@app.job
def holds_gil(ctx: Context, seconds: float) -> str:
    note(ctx, "start")
    numbers = 20_000_000
    while True:
        began = time.monotonic()
        sum(range(numbers))  # one call in C: nothing else in this process runs until it ends
        took = time.monotonic() - began
        if took >= seconds:
            return "done"
        numbers = int(numbers * 1.2 * seconds / took)


@app.job
async def exits(ctx: Context, code: int) -> None:
    note(ctx, "start")
    await asyncio.sleep(0.1)  # the neighbours claimed along with it get to start
    os._exit(code)


@app.job
async def kills_itself(ctx: Context) -> None:
    note(ctx, "start")
    await asyncio.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)


@app.job
async def neighbour(ctx: Context) -> str:
    """Long enough to be caught in a crash next door."""
    note(ctx, "start")
    await asyncio.sleep(0.3)
    return "done"


@app.job
async def forks(ctx: Context) -> str:
    """As a process pool of the handler's own does."""
    forked = os.fork()
    if forked == 0:
        time.sleep(60)  # noqa: ASYNC251
        os._exit(0)
    note(ctx, "start", forked=forked)
    await released()
    return "done"


@app.job
def orphans(ctx: Context) -> int:
    """A process whose parent is gone at once: the kernel gives it to PID 1 of the container."""
    said = subprocess.run(["sh", "-c", "sleep 0.2 >/dev/null & echo $!"], capture_output=True, check=True).stdout
    note(ctx, "start", orphan=int(said))
    return int(said)


@app.job(retry=Retry(backoff="fixed", initial="50ms", jitter=False))
async def says(ctx: Context, word: str) -> str:
    note(ctx, "start")
    await released()
    return word


@app.job
async def talks_in_a_transaction(ctx: Context) -> str:
    async with ctx.transaction() as tx:
        await tx.execute("select 1")
        ctx.progress(50)
        await asyncio.sleep(0.05)
        ctx.progress(90)
        return "done"


@app.job(capability="gpu")
async def needs_gpu(ctx: Context) -> str:
    note(ctx, "start")
    return "done"


@app.job(queue="other")
async def elsewhere(ctx: Context) -> str:
    note(ctx, "start")
    return "done"


@app.job
async def short(ctx: Context) -> str:
    note(ctx, "start")
    await asyncio.sleep(0.05)
    return "done"


HOARD: list[bytes] = []


@app.job
async def hoards(ctx: Context, megabytes: int) -> None:
    """Never gives it back."""
    note(ctx, "start")
    HOARD.append(os.urandom(1 << 20) * megabytes)
