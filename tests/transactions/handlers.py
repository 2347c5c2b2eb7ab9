"""Handlers that write, hand on, and stop where a test wants to look. Cells and workers under test import this module."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

from tenure import Cancel, Context, Fail, Retry, Snooze, Tenure

POINTS = "TENURE_TEST_POINTS"
INSERT = "insert into public.payments (name) values (%s)"
AT_ONCE = Retry(max_attempts=3, initial="10ms", max_backoff="10ms", jitter=False)

app = Tenure()


def passing(ctx: Context, point: str) -> bool:
    """Announces the point; true when there is nothing to wait for. Only the first run of a job is ever held."""
    folder = Path(os.environ[POINTS])
    line = {"point": point, "job": str(ctx.job_id), "kind": ctx.kind, "fence": ctx.fence, "pid": os.getpid()}
    announced = os.open(folder / "points", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(announced, json.dumps(line).encode() + b"\n")
    os.close(announced)
    held = (folder / f"hold {point}", folder / f"hold {ctx.input['name']} at {point}")
    return ctx.fence > 1 or not any(file.exists() for file in held)


def gone_on(point: str) -> bool:
    return Path(os.environ[POINTS], f"go {point}").exists()


async def at(ctx: Context, point: str) -> None:
    if not passing(ctx, point):
        while not gone_on(point):  # noqa: ASYNC110 - said by another process
            await asyncio.sleep(0.01)


def at_sync(ctx: Context, point: str) -> None:
    if not passing(ctx, point):
        while not gone_on(point):
            ctx.signal.check()
            time.sleep(0.01)


def ended(how: str, name: str) -> Any:
    """The ways in which a handler may end."""
    match how:
        case "raises":
            raise ValueError("no money")
        case "raises Fail":
            raise Fail("no money")
        case "raises Cancel":
            raise Cancel("no money")
        case "raises Snooze":
            raise Snooze("1h")
        case "returns Fail":
            return Fail("no money")
        case "returns Cancel":
            return Cancel("no money")
        case "returns Snooze":
            return Snooze("1h")
        case "returns a wrong type":
            return 7
    return f"paid {name}"


@app.job(queue="later")
async def ship(name: str) -> None:
    """Stays pending: no worker serves its queue."""


@app.job(retry=AT_ONCE)
async def in_loop(ctx: Context, name: str, inside: str = "", after: str = "") -> str:
    return await pay(ctx, name, inside, after)


@app.job(retry=AT_ONCE)
def in_thread(ctx: Context, name: str, inside: str = "", after: str = "") -> str:
    return pay_sync(ctx, name, inside, after)


@app.job(retry=AT_ONCE, run_in="process")
def in_process(ctx: Context, name: str, inside: str = "", after: str = "") -> str:
    return pay_sync(ctx, name, inside, after)


@app.job(retry=AT_ONCE, run_in="process")
async def in_process_loop(ctx: Context, name: str, inside: str = "", after: str = "") -> str:
    return await pay(ctx, name, inside, after)


EXECUTORS = {job.name: job for job in (in_loop, in_thread, in_process, in_process_loop)}


async def pay(ctx: Context, name: str, inside: str, after: str) -> Any:
    async with ctx.transaction() as tx:
        await tx.execute(INSERT, [name])
        await at(ctx, "written")
        await ship.using(conn=tx).enqueue(name)
        await at(ctx, "handed on")
        ended(inside, name)
        await at(ctx, "leaving")
    await at(ctx, "left")
    return ended(after, name)


def pay_sync(ctx: Context, name: str, inside: str, after: str) -> Any:
    with ctx.transaction() as tx:
        tx.execute(INSERT, [name])
        at_sync(ctx, "written")
        ship.using(conn=tx).enqueue_sync(name)
        at_sync(ctx, "handed on")
        ended(inside, name)
        at_sync(ctx, "leaving")
    at_sync(ctx, "left")
    return ended(after, name)


@app.job(retry=AT_ONCE, atomic=True)
async def atomic_in_loop(ctx: Context, name: str, inside: str = "") -> str:
    async with ctx.db() as tx:
        await tx.execute(INSERT, [name])
        await ship.using(conn=tx).enqueue(name)
    await at(ctx, "left")
    return ended(inside, name)


@app.job(retry=AT_ONCE, atomic=True)
def atomic_in_thread(ctx: Context, name: str, inside: str = "") -> str:
    with ctx.db() as tx:
        tx.execute(INSERT, [name])
        ship.using(conn=tx).enqueue_sync(name)
    at_sync(ctx, "left")
    return ended(inside, name)


@app.job(retry=AT_ONCE, atomic=True, run_in="process")
def atomic_in_process(ctx: Context, name: str, inside: str = "") -> str:
    with ctx.db() as tx:
        tx.execute(INSERT, [name])
        ship.using(conn=tx).enqueue_sync(name)
    at_sync(ctx, "left")
    return ended(inside, name)


@app.job(retry=AT_ONCE, atomic=True, run_in="process")
async def atomic_in_process_loop(ctx: Context, name: str, inside: str = "") -> str:
    async with ctx.db() as tx:
        await tx.execute(INSERT, [name])
        await ship.using(conn=tx).enqueue(name)
    await at(ctx, "left")
    return ended(inside, name)


ATOMIC = {job.name: job for job in (atomic_in_loop, atomic_in_thread, atomic_in_process, atomic_in_process_loop)}


@app.job(retry=AT_ONCE)
async def with_own_session(ctx: Context, name: str) -> str:
    """Commits at the end of its block, before it returns."""
    import psycopg

    async with (
        await psycopg.AsyncConnection.connect(app.settings.database.dsn, application_name="tenure own") as connection,
        ctx.transaction(connection),
    ):
        await connection.execute(INSERT, [name])
        await at(ctx, "written")
        await ship.using(conn=connection).enqueue(name)
        ctx.set_output(f"paid {name}")
        await at(ctx, "leaving")
    await at(ctx, "left")
    return f"paid {name}"
