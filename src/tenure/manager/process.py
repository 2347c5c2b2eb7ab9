"""One child as the supervisor sees it: a process, a line to it, and the worker id it works under."""

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
from typing import Any

from tenure.manager.spec import ChildSpec, Hello
from tenure.model.errors import ConfigError
from tenure.model.ids import uuid7
from tenure.store.workers import default_name
from tenure.worker.process.protocol import MessageStream

LAST_WORDS = 0.2  # seconds to read what an ended process still said
AFTER_GRACE = 9.0
"""Seconds beyond the grace period for clean-up, handing back and the last write, before a child is killed."""


class ChildProcess:
    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self.worker_id = str(uuid7())
        self.started = time.monotonic()
        self.last_beat = time.monotonic()
        self.running = 0
        self.done = 0
        """Runs that are over."""
        self.memory = 0.0
        """In megabytes."""
        self.leaving = False
        """It has been told to end: it claims nothing more."""
        self.leave_by = math.inf
        self.overstayed = False
        """It was killed because it had been told to end and did not."""
        self.serving = False
        """It has been given its worker id: from here on it may hold jobs."""
        self.said_bye = False
        self.hello: Hello | None = None
        self.number = 1
        """Among the processes of this supervisor, the first one that is free."""
        self._process: asyncio.subprocess.Process | None = None
        self._wire: MessageStream | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def name(self) -> str:
        """As it is called in `tenure workers`, events and logs."""
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
        self._wire = await MessageStream.over(ours)
        self._inbox = self._wire.messages()
        self._send(spec=self.spec.to_message())

    async def greeted(self) -> Hello | None:
        """What the child says of its app; None when it died first. Raises when the app cannot be used."""
        assert self._process is not None
        first = asyncio.ensure_future(anext(self._inbox, None))
        ended = asyncio.ensure_future(self._process.wait())
        await asyncio.wait([first, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        match await first if first.done() else None:
            case {"hello": told}:
                self.hello = Hello(**told)
                return self.hello
            case {"unusable": why}:
                raise ConfigError(why)
            case _:
                return None

    def welcome(self) -> None:
        self.serving = True
        self.last_beat = time.monotonic()
        self._send(worker_id=self.worker_id, name=self.name)

    @property
    def exit_code(self) -> int | None:
        """Negative for a signal, None while it lives."""
        return None if self._process is None else self._process.returncode

    async def watch(self, condemned: Callable[[], None]) -> None:
        """Follows its signs of life until it ends. The end of the line is no sign: a process it forked may hold it open."""
        assert self._process is not None
        reading = asyncio.ensure_future(self._read(condemned))
        await self._process.wait()
        await asyncio.wait([reading], timeout=LAST_WORDS)
        reading.cancel()

    async def _read(self, condemned: Callable[[], None]) -> None:
        async for message in self._inbox:
            match message:
                case {"beat": running, "done": done, "memory": memory}:
                    self.last_beat = time.monotonic()
                    self.running, self.done, self.memory = running, done, memory
                case {"condemned": _}:
                    condemned()
                case {"bye": _}:
                    self.said_bye = True

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()

    def stop(self, grace: float) -> None:
        """It claims nothing more, has so long for what it runs, and ends. A later, shorter wish counts."""
        self.leaving = True
        self.leave_by = min(self.leave_by, time.monotonic() + grace + AFTER_GRACE)
        self._send(stop=grace)

    def tell(self, event: str, fields: dict[str, object]) -> None:
        self._send(event=event, fields=fields)

    def tell_crowd(self, crowd: int) -> None:
        """How many workers serve the same as this one."""
        self._send(crowd=crowd)

    def lose(self, reason: str) -> None:
        self._send(lose=reason)

    def _send(self, **message: Any) -> None:
        if self._wire is not None:  # else it is not even started, and whoever starts it looks whether it is still wanted
            self._wire.send(**message)

    def kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)

    @property
    def age(self) -> float:
        return time.monotonic() - self.started

    @property
    def silent_for(self) -> float:
        return time.monotonic() - self.last_beat
