"""Jobs that continue their chain, for every executor. Processes import this module."""

from __future__ import annotations

import os
from typing import Any

from tenure import Context, Continue, Retry, Tenure

app = Tenure()


@app.job
async def last(n: int, where: list[str]) -> list[str]:
    return [*where, f"last {n}"]


@app.job
async def on_the_loop(n: int) -> Continue[list[str]]:
    return Continue(last, n, where=[f"loop {os.getpid()}"])


@app.job
def in_a_thread(n: int) -> Continue[list[str]]:
    return Continue(last, n, where=[f"thread {os.getpid()}"])


@app.job(run_in="process")
def in_a_process(n: int) -> Continue[list[str]]:
    return Continue(last, n, where=[f"process {os.getpid()}"])


@app.job(run_in="process")
async def on_the_loop_of_a_process(n: int) -> Continue[list[str]]:
    raise Continue(last, n, where=[f"process {os.getpid()}"])


@app.job(atomic=True)
async def in_its_transaction(ctx: Context, n: int) -> Continue[list[str]]:
    async with ctx.db() as connection:
        await connection.execute("insert into written values (%s)", (n,))
    return Continue(last, n, where=["transaction"])


@app.job(atomic=True)
def in_the_transaction_of_a_thread(ctx: Context, n: int) -> Continue[list[str]]:
    with ctx.db() as connection:
        connection.execute("insert into written values (%s)", (n,))
    return Continue(last, n, where=["transaction"])


@app.job(atomic=True, run_in="process")
def in_the_transaction_of_a_process(ctx: Context, n: int) -> Continue[list[str]]:
    with ctx.db() as connection:
        connection.execute("insert into written values (%s)", (n,))
    return Continue(last, n, where=["transaction"])


PLAIN = [on_the_loop, in_a_thread, in_a_process, on_the_loop_of_a_process]
TRANSACTIONS = [in_its_transaction, in_the_transaction_of_a_thread, in_the_transaction_of_a_process]


@app.job(retry=Retry(max_attempts=2, initial="10ms"))
async def fails_once(ctx: Context) -> list[Any]:
    if not ctx.is_retry:
        raise RuntimeError("once")
    return ctx.blockers


@app.job(run_in="process")
def blockers_in_a_process(ctx: Context) -> list[Any]:
    return ctx.blockers
