"""The jobs of `tenure demo`: a small shop's background work, with its usual troubles."""

from __future__ import annotations

import asyncio
import os
import time

from tenure import Context, Fail, Retry, Tenure

app = Tenure()


@app.job(queue="mail", priority="high")
async def send_receipt(order: int) -> str:
    """Quick and plentiful."""
    await asyncio.sleep(0.15)
    return f"receipt for order {order} sent"


@app.job
def render_invoice(order: int) -> int:
    """A plain function: runs in a thread."""
    time.sleep(0.3)
    return order


@app.job(retry=Retry(max_attempts=4, initial="300ms"))
async def charge_card(ctx: Context, order: int) -> str:
    """The bank's line is bad: the first attempt fails."""
    await asyncio.sleep(0.1)
    if ctx.attempt == 1:
        raise ConnectionError("the bank did not answer")
    return f"order {order} charged at attempt {ctx.attempt}"


@app.job
async def check_address(order: int) -> Fail:
    """Retrying would not help, and the handler says so."""
    return Fail(f"order {order}: there is no such street")


@app.job(max_attempts=2)
async def sync_ledger(order: int) -> None:
    """Fails whenever it is tried, and ends as a dead letter."""
    raise RuntimeError(f"the ledger refuses order {order}")


@app.job
async def segfault(order: int) -> None:
    """Takes its whole process down, whoever else works in it."""
    os._exit(order)
