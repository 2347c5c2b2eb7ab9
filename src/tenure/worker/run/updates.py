"""Writes what runs report: progress, log lines, heartbeats. Handlers never wait for it.

What is reported between two writes is written by one statement for all runs of the process: at once after a pause, and every half
second otherwise; that of watched runs more often (`update_pace`). Of several reports of progress, only the latest is written.
Before the outcome of a run is written, all that it has reported is written.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

from tenure.model.errors import StoreUnavailable
from tenure.model.payloads import clean_text
from tenure.periodic import PeriodicTask
from tenure.store import jobs
from tenure.store.faults import FailedInside, Refused
from tenure.store.groups import send_or_halve
from tenure.store.link import Link
from tenure.worker.run.run import Run
from tenure.worker.run.update_pace import WATCHED_GAP, UpdatePace

KEPT_LINES = 200
LONGEST_LINE = 2000
LONGEST_MESSAGE = 500


class RunUpdates:
    """What one run has reported and is not written yet. Filled from any thread."""

    __slots__ = ("alive", "count", "lines", "progress", "watched")

    def __init__(self) -> None:
        self.progress: tuple[float, str | None] | None = None
        self.alive = False
        self.lines: deque[dict[str, Any]] = deque(maxlen=KEPT_LINES)
        self.count = 0
        self.watched = False
        """A client watched the job when this run was last written."""

    def log_line(self, level: str, message: str, fields: dict[str, Any]) -> None:
        self.count += 1
        line: dict[str, Any] = {"n": self.count, "at": datetime.now(UTC).isoformat(), "level": level}
        line["message"] = clean_text(message, LONGEST_LINE)
        if fields:
            line["fields"] = {clean_text(str(name)): plain(value) for name, value in fields.items()}
        self.lines.append(line)

    def drop_text(self) -> bool:
        """Whether there was any."""
        had_text = self.progress is not None or bool(self.lines)
        self.progress = None
        self.lines.clear()
        return had_text


def plain(value: Any) -> Any:
    """What a log line can keep of any value."""
    if value is None or isinstance(value, bool):
        return value
    try:
        if isinstance(value, int | float) and abs(value) < 1e300:  # neither NaN nor infinity is below
            return value
        return clean_text(str(value), LONGEST_LINE)
    except Exception as fault:  # noqa: BLE001 - an error of a value's own code must not end the handler
        return f"({type(value).__name__} whose str() raised {type(fault).__name__})"


class UpdateWriter:
    def __init__(self, link: Link, *, watched: Callable[[str], None], lost: Callable[[list[Run]], None]) -> None:
        """`watched(job_id)` is called when a client watches the job, `lost(runs)` when runs no longer hold their jobs."""
        self._link = link
        self._watched = watched
        self._lost = lost
        self._dirty: set[Run] = set()
        self._on_the_way: set[Run] = set()
        self._sending = asyncio.Lock()
        self._pace = UpdatePace()
        self._loop = asyncio.get_running_loop()
        self.task = PeriodicTask("updates", self._turn)

    # From any thread

    def progress(self, run: Run, percent: float, message: str | None) -> None:
        self._of(run).progress = (percent, None if message is None else clean_text(message, LONGEST_MESSAGE))
        self._mark(run)

    def alive(self, run: Run) -> None:
        run.heartbeat_at = time.monotonic()
        self._of(run).alive = True
        self._mark(run)

    def log_line(self, run: Run, level: str, message: str, fields: dict[str, Any]) -> None:
        self._of(run).log_line(level, message, fields)
        self._mark(run)

    def _of(self, run: Run) -> RunUpdates:
        if run.updates is None:
            run.updates = RunUpdates()
        return run.updates

    def _mark(self, run: Run) -> None:
        if not run.reports or run in self._dirty:
            return
        self._dirty.add(run)
        if len(self._dirty) == 1 or self._of(run).watched:
            self._loop.call_soon_threadsafe(self.task.wake)

    # On the loop

    async def flush(self, runs: Collection[Run] | None = None) -> None:
        """Writes what these runs, or all, have reported. Raises `StoreUnavailable` and keeps what could not be written."""
        if runs is not None and not any(run in self._dirty or run in self._on_the_way for run in runs):
            return  # it has nothing to write, so it must not wait for others
        async with self._sending:
            wanted = list(self._dirty) if runs is None else [run for run in runs if run in self._dirty]
            if wanted:
                await send_or_halve(wanted, self._send, self._refused)

    async def _turn(self) -> float:
        if due := self._pace.due(list(self._dirty), time.monotonic()):
            await self.flush(due)
            self._pace.written(time.monotonic())
            await asyncio.sleep(WATCHED_GAP)
        return self._pace.rest(list(self._dirty), time.monotonic())

    async def _send(self, runs: list[Run]) -> None:
        self._dirty.difference_update(runs)
        self._on_the_way = set(runs)
        taken = {run: _taken(run) for run in runs}
        try:
            rows = await self._link.fetch(
                jobs.write_updates("[" + ",".join(text for text, _ in taken.values()) + "]", KEPT_LINES)
            )
        except BaseException as error:
            if isinstance(error, StoreUnavailable | Refused | asyncio.CancelledError):
                for run, (_, undo) in taken.items():
                    undo()
                    self._dirty.add(run)
            raise
        finally:
            self._on_the_way = set()
        ours = {row.id: row.watched for row in rows}
        for run in runs:
            if run.job_id in ours:
                run.heartbeat_written()
                self._written(run, watched=ours[run.job_id])
        if lost := [run for run in runs if run.job_id not in ours and not run.settled]:
            for run in lost:  # its row may have been locked for a moment: sent again until it is known that the job is lost
                taken[run][1]()
                self._dirty.add(run)
            self._lost(lost)

    def _written(self, run: Run, *, watched: bool) -> None:
        self._of(run).watched = watched
        if watched and run.reports:  # one that is about to be settled reports nothing more
            self._watched(run.job_id)

    async def _refused(self, run: Run, error: Refused) -> None:  # noqa: ARG002 - the text is dropped for any reason
        """The heartbeat is written without the text: the run would lose its lease otherwise."""
        updates = run.updates
        assert updates is not None
        self._dirty.discard(run)
        if updates.drop_text() and updates.alive:
            try:
                await self._send([run])
            except (Refused, FailedInside):
                self._dirty.discard(run)
                updates.drop_text()
                updates.alive = False
        else:
            updates.alive = False


def _taken(run: Run) -> tuple[str, Callable[[], None]]:
    """The JSON of what the run reported, and how to restore it if it could not be written."""
    updates = run.updates
    assert updates is not None
    progress, updates.progress = updates.progress, None
    alive, updates.alive = updates.alive, False
    lines = []
    while updates.lines:
        lines.append(updates.lines.popleft())

    def undo() -> None:
        updates.progress = updates.progress or progress
        updates.alive = updates.alive or alive
        kept = [*lines, *updates.lines][-KEPT_LINES:]
        updates.lines.clear()
        updates.lines.extend(kept)

    fields: dict[str, Any] = {"id": run.job_id, "claim_id": run.claim_id}
    if progress is not None:
        fields |= {"percent": progress[0], "message": progress[1]}
    if alive and run.kind.lease is not None:
        fields["lease"] = run.kind.lease.total_seconds()
        run.heartbeat_sent_at = time.monotonic()
    if lines:
        fields |= {"first": lines[0]["n"], "last": lines[-1]["n"], "lines": lines}
    return json.dumps(fields, ensure_ascii=False), undo
