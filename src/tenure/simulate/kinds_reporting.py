"""Kinds that report progress or write log lines, from a coroutine, a thread or a process."""

from __future__ import annotations

import asyncio
import time

from tenure import Context
from tenure.simulate.app import app

STEP = 0.05  # seconds


@app.job
async def progress_steps(ctx: Context, seed: int, steps: int = 10) -> int:
    """Reports its progress step by step, from a coroutine. Ends: completed at 100 percent."""
    for step in range(1, steps + 1):
        await asyncio.sleep(STEP)
        ctx.progress(100 * step / steps, f"step {step} of {steps}")
    return seed


@app.job
def progress_in_thread(ctx: Context, seed: int, steps: int = 10) -> int:
    """The same from a thread. Ends: completed at 100 percent."""
    _report_steps(ctx, steps)
    return seed


@app.job(run_in="process")
def progress_in_process(ctx: Context, seed: int, steps: int = 10) -> int:
    """The same from a separate process. Ends: completed at 100 percent."""
    _report_steps(ctx, steps)
    return seed


@app.job
async def logs_lines(ctx: Context, seed: int, lines: int = 20) -> int:
    """Writes log lines that are stored with the job. Ends: completed."""
    for line in range(1, lines + 1):
        ctx.log.info("line written", line=line, seed=seed)
    ctx.log.warning("last line written", lines=lines)
    return seed


def _report_steps(ctx: Context, steps: int) -> None:
    for step in range(1, steps + 1):
        time.sleep(STEP)
        ctx.progress(100 * step / steps, f"step {step} of {steps}")
