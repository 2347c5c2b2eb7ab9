"""Kinds that tell how far they are, from wherever they run."""

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
    _walk(ctx, steps)
    return seed


@app.job(run_in="process")
def progress_in_process(ctx: Context, seed: int, steps: int = 10) -> int:
    """The same from a process of its own. Ends: completed at 100 percent."""
    _walk(ctx, steps)
    return seed


@app.job
async def logs_lines(ctx: Context, seed: int, lines: int = 20) -> int:
    """Writes log lines that stand with the job. Ends: completed."""
    for line in range(1, lines + 1):
        ctx.log.info("line written", line=line, seed=seed)
    ctx.log.warning("that was the last", lines=lines)
    return seed


def _walk(ctx: Context, steps: int) -> None:
    for step in range(1, steps + 1):
        time.sleep(STEP)
        ctx.progress(100 * step / steps, f"step {step} of {steps}")
