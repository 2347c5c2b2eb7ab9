"""Renders a snapshot for `tenure top`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tenure.cli.output import ago, rough, safe
from tenure.client.fleet_snapshot import FleetSnapshot, QueueSnapshot
from tenure.client.overview import LeaderStatus, WorkerStatus

QUEUES = ("queue", "pending", "running", "scheduled", "retry", "dead", "oldest", "per second")
WORKERS = ("worker", "running", "seen", "queues")
LEADERS = ("duty", "held by", "term", "since")


def frame(snapshot: FleetSnapshot, *, rows: int | None = None, trouble: str | None = None) -> RenderableType:
    """At most `rows` rows of queues and of workers. `trouble`: why the snapshot is old."""
    parts: list[RenderableType] = [_heading(snapshot), Text()]
    parts += [_grid(QUEUES, [_queue(line) for line in snapshot.queues], rows, "no queues"), Text()]
    workers = sorted(snapshot.workers, key=lambda worker: (not worker.alive, -worker.held, worker.host, worker.pid))
    parts += [_grid(WORKERS, [_worker(worker, snapshot.at) for worker in workers], rows, "no workers"), Text()]
    parts.append(_grid(LEADERS, [_leader(leader, snapshot.at) for leader in snapshot.leaders], None, "no leaders"))
    if trouble is not None:
        parts += [Text(), Text(safe(trouble), style="bold red")]
    return Group(*parts)


def _heading(snapshot: FleetSnapshot) -> Text:
    totals = snapshot.totals
    alive = sum(worker.alive for worker in snapshot.workers)
    text = Text(snapshot.at.astimezone().strftime("%H:%M:%S"), style="bold")
    for value, name in (
        (f"{totals['pending']:,}", "pending"),
        (f"{totals['running']:,} of {totals['slots']:,}", "running"),
        (f"{totals['rate']:,.1f}", "per second"),
        (f"{alive:,}", "workers"),
    ):
        text.append("   ").append(value, "cyan").append(f" {name}", "dim")
    return text


def _grid(names: Sequence[str], lines: list[list[Text]], rows: int | None, empty: str) -> RenderableType:
    if not lines:
        return Text(empty, style="dim")
    grid = Table.grid(padding=(0, 2, 0, 0))
    for index, _ in enumerate(names):
        numbers = index > 0 and names is QUEUES
        grid.add_column(justify="right" if numbers else "left", no_wrap=True, overflow="ellipsis")
    grid.add_row(*(Text(name, style="dim") for name in names))
    for line in lines[:rows]:
        grid.add_row(*line)
    if rows is not None and len(lines) > rows:
        return Group(grid, Text(f"and {len(lines) - rows} more", style="dim"))
    return grid


def _queue(line: QueueSnapshot) -> list[Text]:
    name = Text(safe(line.name) + (" (paused)" if line.paused else ""), style="yellow" if line.paused else "")
    oldest = "-" if line.oldest_seconds is None else rough(line.oldest_seconds)
    counts = [_count(line.pending), _count(line.running, "cyan"), _count(line.scheduled), _count(line.retry, "yellow")]
    return [name, *counts, _count(line.dead, "red"), Text(oldest), Text(f"{line.rate:,.1f}" if line.rate else "-")]


def _count(count: int, style: str = "") -> Text:
    return Text(f"{count:,}", style=style) if count else Text("-", style="dim")


def _worker(worker: WorkerStatus, now: datetime) -> list[Text]:
    style = "" if worker.alive else "red"
    where = Text(safe(worker.name or f"{worker.host}:{worker.pid}"), style=style)
    seen = ago(worker.heartbeat_at, now) if worker.state == "alive" else worker.state
    return [where, Text(f"{worker.held}/{worker.concurrency}"), Text(seen, style=style), Text(safe(", ".join(worker.queues)))]


def _leader(leader: LeaderStatus, now: datetime) -> list[Text]:
    where = leader.metadata
    holder = f"{where['host']}:{where['pid']}" if where else str(leader.holder)
    style = "" if leader.holds else "red"
    held = (
        ("every supervisor" if leader.shared else safe(holder)) if leader.holds else f"none: the lease of {safe(holder)} expired"
    )
    return [Text(leader.duty), Text(held, style=style), Text(str(leader.term)), Text(ago(leader.acquired_at, now))]
