"""`tenure top`."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import click

from tenure.cli import output, param_types
from tenure.cli.command_context import CommandContext, with_context
from tenure.client.fleet_snapshot import FleetSampler, FleetSnapshot
from tenure.model.errors import StoreUnavailable

BETWEEN_SAMPLES = 0.5  # seconds; a rate needs two samples
LARGEST_SHARE = 0.1
"""The largest share of the time that is spent on queries: counting a million jobs is slow, so the pause is then longer."""

MARGIN = 14  # lines of a screen that are not for queues and workers


@click.command()
@with_context
@click.option("--once", is_flag=True, help="Print one frame and exit; the default without a terminal.")
@click.option("--every", type=param_types.DURATION, default="1s", show_default=True, help="How often to refresh.")
async def top(context: CommandContext, once: bool, every: float) -> None:
    """Watch queues, workers and leaders, live, until Ctrl-C. With --json, print one snapshot.

    Rates count jobs that finished in the last seconds. Queries take at most a tenth of the time. Continues after an outage of
    PostgreSQL.
    """
    sampler = FleetSampler(context.client)
    if context.as_json or once or not output.is_terminal():
        snapshot = await _sample_with_rates(sampler)
        if context.as_json:
            output.print_json(snapshot.to_json())
        else:
            _print(snapshot)
        return
    with suppress(asyncio.CancelledError):  # Ctrl-C
        await _live(sampler, every)


async def _sample_with_rates(sampler: FleetSampler) -> FleetSnapshot:
    await sampler.sample()
    await asyncio.sleep(BETWEEN_SAMPLES)
    return await sampler.sample()


def _print(snapshot: FleetSnapshot) -> None:
    from tenure.cli.top_frame import frame  # noqa: PLC0415 - rich is slow to import

    output.show(frame(snapshot))


async def _live(sampler: FleetSampler, every: float) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    from tenure.cli.top_frame import frame  # noqa: PLC0415

    snapshot = await sampler.sample()
    console = Console(highlight=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            began, trouble = time.monotonic(), None
            try:
                snapshot = await sampler.sample()
            except StoreUnavailable as error:
                trouble = f"{error}; retrying. Last update at {snapshot.at.astimezone():%H:%M:%S}."
            live.update(frame(snapshot, rows=max(3, (console.height - MARGIN) // 2), trouble=trouble), refresh=True)
            # Bounds the load on the server. The time of a failed sample does not measure that load.
            cost = 0.0 if trouble else time.monotonic() - began
            await asyncio.sleep(max(every, cost * (1 / LARGEST_SHARE - 1)))
