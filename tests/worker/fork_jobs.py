"""Handlers that fork. Copied into a project and run by real worker processes; what they saw goes into a file."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from tenure import Context, Tenure

app = Tenure()
HERE = Path(__file__).parent


def note(text: object) -> None:
    file = os.open(HERE / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{text}\n".encode())
    os.close(file)


def hold() -> None:
    """Takes long, in a process that the handler has started."""
    note(os.getpid())
    time.sleep(60)


@app.job(max_attempts=1)
def fork_in_thread() -> int:
    return os.fork()


@app.job(max_attempts=1)
async def fork_on_loop() -> int:
    return os.fork()


@app.job(max_attempts=1)
async def fork_on_loop_and_wait() -> int:
    forked = os.fork()
    await asyncio.sleep(0.1)
    return forked


@app.job(max_attempts=1, run_in="process")
def fork_in_process() -> int:
    forked = os.fork()
    if forked:
        os.waitpid(forked, 0)  # the copy is first
    return forked


@app.job(max_attempts=1, run_in="process")
async def fork_in_process_on_loop() -> int:
    forked = os.fork()
    if forked:
        os.waitpid(forked, 0)  # noqa: ASYNC222 - nothing else runs in this process
    return forked


@app.job(max_attempts=1, run_in="process")
def fork_that_speaks(ctx: Context) -> str:
    """The copy tries to report for the job; only the original can."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        for report in (lambda: ctx.progress(99), ctx.heartbeat):
            try:
                report()
            except RuntimeError as refused:
                os.write(writer, str(refused).encode())
        time.sleep(0.2)  # longer than progress is held back
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as refusals:
        return refusals.read()


@app.job(max_attempts=1)
def start_in_thread() -> int:
    child = multiprocessing.get_context("fork").Process(target=hold)
    child.start()
    return child.pid or 0


@app.job(max_attempts=1)
async def start_on_loop() -> int:
    child = multiprocessing.get_context("fork").Process(target=hold)
    child.start()
    return child.pid or 0


@app.job(max_attempts=1, run_in="process")
def start_in_process() -> int:
    child = multiprocessing.get_context("fork").Process(target=hold)
    child.start()
    return child.pid or 0


@app.job(max_attempts=1, run_in="process")
def start_program_in_process() -> int:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid


@app.job(max_attempts=1, run_in="process")
def start_daemon_in_process() -> int:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True).pid


@app.job(max_attempts=1)
def terminate_a_child() -> int | None:
    """As multiprocessing's pools do with theirs."""
    child = multiprocessing.get_context("fork").Process(target=hold)
    child.start()
    child.terminate()
    child.join(20)
    return child.exitcode


@app.job(max_attempts=1)
def fork_in_a_thread_that_ends() -> int:
    """The child must not end with the thread that started it."""
    children = []

    def start() -> None:
        child = multiprocessing.get_context("fork").Process(target=hold)
        child.start()
        children.append(child)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    return children[0].pid or 0


@app.job
async def fine(n: int) -> int:
    return n
