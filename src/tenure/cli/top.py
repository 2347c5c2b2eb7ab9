"""`tenure top`."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import click

from tenure.cli import output, types
from tenure.cli.asking import Asker, asks
from tenure.cli.snapshot import Observer, Snapshot
from tenure.model.errors import StoreUnavailable

BETWEEN = 0.5  # seconds between the two looks that a rate needs
LARGEST_SHARE = 0.1
"""Of the time is spent on asking: counting a million jobs takes a while, and then there is a longer rest."""

MARGIN = 14  # lines of a screen that are not for queues and workers


@click.command()
@asks
@click.option("--once", is_flag=True, help="One frame, and the end; so it is without a terminal.")
@click.option("--every", type=types.DURATION, default=1.0, show_default="1s", help="How often to look anew.")
async def top(ask: Asker, once: bool, every: float) -> None:
    """Watch queues, workers and leaders, live, until Ctrl-C. With --json, one snapshot.

    Rates are jobs that ended, over the last seconds. Asks few and cheap questions, and goes on when PostgreSQL comes back.
    """
    observer = Observer(ask.client)
    if ask.as_json or once or not output.is_terminal():
        snapshot = await _measured(observer)
        if ask.as_json:
            output.emit(snapshot.to_json())
        else:
            _print(snapshot)
        return
    with suppress(asyncio.CancelledError):  # Ctrl-C is how it ends
        await _live(observer, every)


async def _measured(observer: Observer) -> Snapshot:
    await observer.look()
    await asyncio.sleep(BETWEEN)
    return await observer.look()


def _print(snapshot: Snapshot) -> None:
    from tenure.cli.top_frame import frame  # noqa: PLC0415 - rich is slow to import

    output.show(frame(snapshot))


async def _live(observer: Observer, every: float) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    from tenure.cli.top_frame import frame  # noqa: PLC0415

    snapshot = await observer.look()
    console = Console(highlight=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            began, trouble = time.monotonic(), None
            try:
                snapshot = await observer.look()
            except StoreUnavailable as error:
                trouble = f"{error}; trying again. This is how it was at {snapshot.at.astimezone():%H:%M:%S}."
            live.update(frame(snapshot, rows=max(3, (console.height - MARGIN) // 2), trouble=trouble), refresh=True)
            # What looking costs the server is bounded; a look that failed says nothing of that.
            cost = 0.0 if trouble else time.monotonic() - began
            await asyncio.sleep(max(every, cost * (1 / LARGEST_SHARE - 1)))
