"""A child process from the supervisor's side: the process, the message stream to it, and its worker id."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from tenure.manager.messages import (
    AppLoaded,
    AppUnusable,
    AssignWorker,
    ChildClaims,
    ChildHeartbeat,
    ChildRuns,
    LoadApp,
    LoseLease,
    RelayEvent,
    SetPeers,
    Stop,
    StoppedCleanly,
    ToChild,
    WorkerFoundCondemned,
    receive,
)
from tenure.manager.spec import ChildHello, ChildSpec
from tenure.model.errors import ConfigError
from tenure.model.ids import uuid7
from tenure.model.run_counts import RunTotals
from tenure.store.workers import default_name
from tenure.worker.process.protocol import MessageStream

if TYPE_CHECKING:
    from tenure.worker.run.abort import AbortReason

FINAL_READ = 0.2  # seconds to read the last messages of a process that has ended
AFTER_GRACE = 9.0
"""Seconds beyond the grace period for clean-up, requeuing and the last write, before a child is killed."""


class ChildProcess:
    def __init__(self, spec: ChildSpec, runs: RunTotals | None = None) -> None:
        """`runs` receives the runs that the child counts."""
        self.spec = spec
        self._runs = RunTotals() if runs is None else runs
        self.worker_id = str(uuid7())
        self.started = time.monotonic()
        self.last_heartbeat = time.monotonic()
        self.running = 0
        self.done = 0
        """Runs that have ended."""
        self.memory = 0.0
        self.unwritten = 0
        """In megabytes."""
        self.stopping = False
        """It was asked to stop and claims no more jobs."""
        self.stop_deadline = math.inf
        self.killed_late = False
        """It was killed because it did not stop in time."""
        self.serving = False
        """It has received its worker id and may hold jobs from now on."""
        self.stopped_cleanly = False
        self.hello: ChildHello | None = None
        self.number = 1
        """The lowest number that no other process of this supervisor has."""
        self._process: asyncio.subprocess.Process | None = None
        self._stream: MessageStream | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def name(self) -> str:
        """Shown in `tenure workers`, events and logs."""
        given = self.spec.name
        if given is None:
            return default_name(self.pid)
        return given if self.number == 1 else f"{given}-{self.number}"

    async def spawn(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tenure.manager.child_start",
                str(theirs.fileno()),
                str(os.getpid()),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
            )
        self._stream = await MessageStream.over(ours)
        self._inbox = receive(self._stream)
        self._send(LoadApp(self.spec))

    async def receive_hello(self) -> ChildHello | None:
        """The child's description of its app; None if the child died first. Raises `ConfigError` if the app cannot be used."""
        assert self._process is not None
        first = asyncio.ensure_future(anext(self._inbox, None))
        ended = asyncio.ensure_future(self._process.wait())
        await asyncio.wait([first, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        match await first if first.done() else None:
            case AppLoaded(hello):
                self.hello = hello
                return self.hello
            case AppUnusable(reason):
                raise ConfigError(reason)
            case _:
                return None

    def assign_worker(self) -> None:
        self.serving = True
        self.last_heartbeat = time.monotonic()
        self._send(AssignWorker(self.worker_id, self.name))

    @property
    def exit_code(self) -> int | None:
        """Negative for a signal, None while it lives."""
        return None if self._process is None else self._process.returncode

    async def watch(self, condemned: Callable[[], None]) -> None:
        """Reads its messages until it ends. The end of the stream does not show that: a process it forked may keep it open."""
        assert self._process is not None
        reading = asyncio.ensure_future(self._read(condemned))
        await self._process.wait()
        await asyncio.wait([reading], timeout=FINAL_READ)
        reading.cancel()

    async def _read(self, condemned: Callable[[], None]) -> None:
        async for message in self._inbox:
            match message:
                case ChildHeartbeat(running, done, memory, unwritten):
                    self.last_heartbeat = time.monotonic()
                    self.running, self.done, self.memory, self.unwritten = running, done, memory, unwritten
                case ChildRuns(counts):
                    self._runs.add(counts)
                case ChildClaims(count):
                    self._runs.add_claims(self.spec.pool, count)
                case WorkerFoundCondemned():
                    condemned()
                case StoppedCleanly():
                    self.stopped_cleanly = True

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def stop(self, grace: float) -> None:
        """It claims no more jobs, has `grace` seconds for the ones it runs, and ends. A later call can only shorten that."""
        self.stopping = True
        self.stop_deadline = min(self.stop_deadline, time.monotonic() + grace + AFTER_GRACE)
        self._send(Stop(grace))

    def send_event(self, event: str, fields: dict[str, object]) -> None:
        self._send(RelayEvent(event, fields))

    def send_peers(self, peers: int) -> None:
        """`peers`: the number of workers that serve the same queues as this one."""
        self._send(SetPeers(peers))

    def lose_lease(self, reason: AbortReason) -> None:
        self._send(LoseLease(reason))

    def _send(self, message: ToChild) -> None:
        if self._stream is not None:  # otherwise it is not started yet, and its start checks whether it is still wanted
            self._stream.send(message)

    def kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)

    @property
    def age(self) -> float:
        return time.monotonic() - self.started

    @property
    def silence(self) -> float:
        return time.monotonic() - self.last_heartbeat
