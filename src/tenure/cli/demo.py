"""`tenure demo`: the promises, acted out on a real PostgreSQL with real processes and a real kill -9."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tenure.cli.up import database_or_embedded
from tenure.client.job import Call
from tenure.simulate import demo as shop
from tenure.store import jobs, workers
from tenure.store.link import Link
from tenure.store.migrator import migrate
from tenure.store.place import Place

FINAL = ("completed", "failed", "dead_letter")
PATIENCE = 60.0


@click.command()
@click.option("--dsn", help="PostgreSQL to use instead of an embedded one.")
def demo(dsn: str | None) -> None:
    """See it at work: starts a PostgreSQL, workers and jobs, and kills one of them."""
    console = Console()
    began = time.monotonic()
    with console.status("starting PostgreSQL"), database_or_embedded(dsn, None) as settings:
        console.print(f"[green]✓[/] PostgreSQL is up ({time.monotonic() - began:.1f} s)")
        shop.app.given["dsn"] = settings.dsn
        good = asyncio.run(_play(console, settings.place))
    sys.exit(0 if good else 1)


async def _play(console: Console, place: Place) -> bool:
    await migrate(place)
    link = Link(place, "demo")
    with _worker(place) as process:
        await _until(lambda: _children(link, process), "the workers did not start; see .tenure/demo-worker.log")
        console.print("[green]✓[/] a supervisor with two worker processes is up")
        total, since = await _hand_in()
        console.print(f"[green]✓[/] {total} jobs handed in: receipts, invoices, cards that fail once, a poison pill\n")
        counts = await _follow(console, link, process, total, since)
    await link.close()
    await shop.app.close()
    return _verdict(console, counts, total)


@contextmanager
def _worker(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """The worker as anyone would start it; its log goes to a file."""
    Path(".tenure").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tenure", "worker", "--app", "tenure.simulate.demo:app", "--dsn", place.dsn, "-p", "2"]
    with Path(".tenure/demo-worker.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


async def _hand_in() -> tuple[int, str]:
    calls: list[Call[Any]] = [shop.send_receipt.call(order) for order in range(300)]
    calls += [shop.render_invoice.call(order) for order in range(40)]
    calls += [shop.charge_card.call(order) for order in range(40)]
    calls += [shop.check_address.call(7), shop.sync_ledger.call(8), shop.segfault.call(9)]
    handles = await shop.app.enqueue_many(calls)
    later = await shop.send_receipt.using(delay="3s").enqueue(1000)
    return len(handles) + 1, str(min(handle.id for handle in (*handles, later)))


async def _follow(console: Console, link: Link, process: subprocess.Popen[bytes], total: int, since: str) -> dict[str, int]:
    columns = (TextColumn("{task.description:>11}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
    killed = False
    deadline = time.monotonic() + PATIENCE
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("finished", total=total)
        while True:
            counts = dict(await link.fetch(jobs.count_states(since)))
            finished = sum(counts.get(state, 0) for state in FINAL)
            progress.update(bar, completed=finished)
            if finished >= total or time.monotonic() > deadline:
                return counts
            if not killed and finished > total // 4:
                killed = await _kill_one(progress.console, link, process)
            await asyncio.sleep(0.1)


async def _kill_one(console: Console, link: Link, process: subprocess.Popen[bytes]) -> bool:
    """Kill -9 of a busy worker process, and the time until its jobs are held by others again."""
    busy = [(pid, held) for pid, held in await _children(link, process) if held]
    if not busy:
        return False
    pid, held = max(busy, key=lambda child: child[1])
    os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    console.print(f"  [red]kill -9[/] of worker process {pid}, which was running {held} jobs")
    await _until(lambda: _gone(link, pid), "the dead process was not noticed")
    console.print(f"  its jobs were given back {(time.monotonic() - began) * 1000:.0f} ms later; none is lost\n")
    return True


async def _children(link: Link, process: subprocess.Popen[bytes]) -> list[tuple[int, int]]:
    """The worker processes (pid, jobs held) of this demo; none until all have registered."""
    if process.poll() is not None:
        raise click.ClickException("the worker ended; see .tenure/demo-worker.log")
    return [(pid, held) for pid, held in await link.fetch(workers.count_held())]


async def _gone(link: Link, pid: int) -> bool:
    return pid not in [child for child, _ in await link.fetch(workers.count_held())]


async def _until(look: Callable[[], Awaitable[object]], otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await look():
        if time.monotonic() > deadline:
            raise click.ClickException(otherwise)
        await asyncio.sleep(0.02)


def _verdict(console: Console, counts: dict[str, int], total: int) -> bool:
    console.print()
    told = {
        "completed": "completed, each recorded once",
        "failed": "failed for good: its handler said that retrying is no use",
        "dead_letter": "dead letters: one that always fails; one that killed three processes",
    }
    for state, words in told.items():
        console.print(f"  {counts.get(state, 0):>4} {words}")
    good = sum(counts.get(state, 0) for state in FINAL) == total and counts.get("dead_letter", 0) == 2
    console.print("\n[green]Nothing was lost.[/]" if good else "\n[red]That is not what should have come of it.[/]")
    return good
