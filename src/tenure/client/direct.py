"""Enqueuing without an event loop: on one synchronous connection per process.

Threads that enqueue while a statement is under way wait, and the next statement sends the jobs of all of them.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
import weakref
from dataclasses import dataclass, field
from typing import Any

from tenure.client.calls import Call
from tenure.client.enqueue_batches import LARGEST_GROUP, ExistingJobs, existing_in, explained, out_of_time, writing
from tenure.client.sync_notifier import SyncNotifier
from tenure.model.errors import StoreUnavailable
from tenure.model.wakeup import Wakeup
from tenure.periodic import backoff
from tenure.store import queues
from tenure.store.faults import Refused
from tenure.store.sync_link import SyncLink
from tenure.store.target import DatabaseTarget

log = logging.getLogger("tenure")

NOTIFY_WITHIN = 5.0  # seconds; enqueues wait meanwhile
CLOSE_WITHIN = 2.0  # seconds: a process that exits does not wait for a server that does not answer


@dataclass(slots=True, eq=False)
class SyncBatch:
    """The calls of one enqueue: all of them are written, or none."""

    calls: list[Call[Any]]
    deadline: float
    existing: ExistingJobs | None = None
    error: Exception | None = None
    unsure: bool = False
    """It was sent, and no answer arrived."""
    abandoned: bool = False
    """Its caller has given up."""

    @property
    def open(self) -> bool:
        return self.existing is None and self.error is None and not self.abandoned


@dataclass(slots=True)
class ProcessState:
    """Each process has its own: a forked process must not use the connection or the locks of its parent."""

    link: SyncLink
    notifier: SyncNotifier = field(init=False)
    pid: int = field(default_factory=os.getpid)
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Held by the thread that writes."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: list[SyncBatch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.notifier = SyncNotifier(self._notify_between)

    def close(self) -> None:
        """Does nothing in a forked process: the connection is its parent's."""
        if self.pid != os.getpid():
            return
        self.notifier.flush()
        if self.turn.acquire(timeout=CLOSE_WITHIN):
            try:
                self.link.close()
            finally:
                self.turn.release()

    def notify_due(self, deadline: float) -> None:
        """Sends the notification that is due, if there is one. For the thread that writes."""
        self._notify(self.notifier.take_due(), deadline)

    def _notify_between(self) -> None:
        """Notifies on the same connection, between two enqueues."""
        if not self.turn.acquire(timeout=CLOSE_WITHIN):
            return
        try:
            self._notify(self.notifier.take(), math.inf)
        finally:
            self.turn.release()

    def _notify(self, wakeups: list[Wakeup], deadline: float) -> None:
        """What cannot be sent is dropped: listeners also poll."""
        if not wakeups:
            return
        query = queues.notify_after(self.link.database.channel, wakeups)
        try:
            self.link.fetch(query, deadline=min(deadline, time.monotonic() + NOTIFY_WITHIN))
        except (StoreUnavailable, Refused) as error:
            log.debug("notification not sent", extra={"error": str(error)})


class DirectEnqueuer:
    def __init__(self, database: DatabaseTarget) -> None:
        self.database = database
        self._state = self._new_state()

    def enqueue(self, calls: list[Call[Any]], wakeups: frozenset[Wakeup], within: float) -> ExistingJobs:
        """Returns when the jobs are durable. While PostgreSQL is away they are sent again, for `within` seconds."""
        if self._state.pid != os.getpid():
            self._state = self._new_state()
        state = self._state
        batch = SyncBatch(calls, time.monotonic() + within)
        with state.lock:
            state.waiting.append(batch)
        try:
            self._write_until_done(state, batch, within)
        finally:
            batch.abandoned = True
        if isinstance(batch.error, Refused):
            raise explained(batch.error) from batch.error
        if batch.error is not None:
            raise batch.error
        state.notifier.notify(wakeups)
        return batch.existing or {}

    def close(self) -> None:
        self._state.close()

    def _new_state(self) -> ProcessState:
        state = ProcessState(SyncLink(self.database, "enqueue"))
        weakref.finalize(self, state.close)
        return state

    def _write_until_done(self, state: ProcessState, batch: SyncBatch, within: float) -> None:
        """Writes waiting batches, in turns with other threads, until this batch is written or its time is over."""
        failures, last = 0, None
        while batch.open:
            left = batch.deadline - time.monotonic()
            if left <= 0 or not state.turn.acquire(timeout=left):
                raise out_of_time(within, last) from last
            try:
                if batch.open:
                    self._write_waiting(state, batch.deadline)
            except StoreUnavailable as error:
                failures, last = failures + 1, error
            finally:
                state.turn.release()
            if batch.open and failures:
                time.sleep(max(0.0, min(backoff(failures), batch.deadline - time.monotonic())))

    def _write_waiting(self, state: ProcessState, deadline: float) -> None:
        state.notify_due(deadline)
        group = _taken(state)
        try:
            self._send_or_halve(state.link, group, deadline)
        finally:
            if left := [batch for batch in group if batch.open]:
                with state.lock:
                    state.waiting[:0] = left

    def _send_or_halve(self, link: SyncLink, group: list[SyncBatch], deadline: float) -> None:
        """Halves a refused group until the refused batch is alone; all others are written."""
        try:
            self._send(link, group, deadline)
        except Refused as error:
            if len(group) == 1:
                group[0].error = error
                return
            middle = len(group) // 2
            self._send_or_halve(link, group[:middle], deadline)
            self._send_or_halve(link, group[middle:], deadline)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - each caller raises it
            for batch in group:
                batch.error = error

    def _send(self, link: SyncLink, group: list[SyncBatch], deadline: float) -> None:
        again = any(batch.unsure for batch in group)
        query = writing([call for batch in group for call in batch.calls], again=again)
        try:
            existing = existing_in(link.fetch(query, deadline=deadline))
        except Refused:
            raise
        except BaseException:
            for batch in group:
                batch.unsure = True
            raise
        for batch in group:
            batch.existing = existing


def _taken(state: ProcessState) -> list[SyncBatch]:
    """The first waiting batches, as many as fit into one statement."""
    with state.lock:
        waiting = [batch for batch in state.waiting if batch.open]
        size, count = 0, 0
        for batch in waiting:
            size += len(batch.calls)
            if count and size > LARGEST_GROUP:
                break
            count += 1
        state.waiting = waiting[count:]
    return waiting[:count]
