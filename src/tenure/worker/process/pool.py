"""Processes for handlers with `run_in="process"`: one job at a time each, started when needed, replaced after `max_tasks`.

The death of a process is the crash of its one job. An abort interrupts the handler, and the process is killed if it does not end;
it exits by itself when its worker is gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from tenure.model.errors import ProcessDied
from tenure.model.kinds import Kind, Registry
from tenure.model.outcomes import Outcome
from tenure.store.target import DatabaseTarget
from tenure.worker.process.exceptions import Remote, unpacked
from tenure.worker.process.functions import call_message, unpacked_value
from tenure.worker.process.messages import (
    Abort,
    CallFunction,
    Decided,
    Flush,
    Flushed,
    FunctionReturned,
    HandlerCalled,
    Heartbeat,
    Hello,
    InDoubt,
    Raised,
    Returned,
    RunJob,
    SendLogLine,
    SendProgress,
    SettledItself,
    StoppedByAbort,
    ToProcess,
    ToWorker,
    from_message,
)
from tenure.worker.process.protocol import MessageStream, UnknownMessage
from tenure.worker.run.abort import Aborted, AbortReason
from tenure.worker.run.calling import ABORT_PATIENCE
from tenure.worker.run.context import Context
from tenure.worker.run.run import Run
from tenure.worker.run.services import LoopServices
from tenure.worker.run.settlement import Settlement

log = logging.getLogger("tenure")

START_PATIENCE = 60.0
"""Seconds for the start of a process and the imports of its handler."""

DRAIN_SECONDS = 0.2
"""Seconds for the last messages of a process that died to arrive."""


@dataclass(frozen=True, kw_only=True)
class ProcessSettings:
    max_tasks: int = 1000
    """Jobs that a process runs before it is replaced, which bounds leaks of handlers."""

    memory_mb: int | None = None
    """A process that uses more is killed, and its job has crashed. None: no limit."""


class HandlerProcess:
    """One process, as its worker sees it."""

    def __init__(self) -> None:
        self.tasks = 0
        self._process: asyncio.subprocess.Process | None = None
        self._stream: MessageStream | None = None
        self._reaping: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def spawn(self, database: DatabaseTarget, home: str | None) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            stream = self._stream = await MessageStream.over(ours)
            self._inbox = stream.messages()
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tenure.worker.process.main",
                str(theirs.fileno()),
                str(os.getpid()),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
            )
        self._reaping = asyncio.create_task(_end_stream_after_exit(self._process, stream))
        self.send(Hello(database, sys.path, home, _uses_django()))

    def send(self, message: ToProcess) -> None:
        assert self._stream is not None
        self._stream.send(message)

    async def receive(self) -> ToWorker | None:
        """None when it is gone."""
        message = await anext(self._inbox, None)
        return None if message is None else from_message(message)

    @property
    def dead(self) -> bool:
        return self._process is None or self._process.returncode is not None

    async def cause(self) -> str:
        """How it died."""
        assert self._process is not None
        code = await self._process.wait()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def signal(self, number: signal.Signals) -> None:
        if not self.dead:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _kill_group(self) -> None:
        """Also kills what its handlers have started, unless that has its own process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def end(self, reason: str) -> None:
        """Asks it to end, then kills it."""
        assert self._process is not None
        self.send(Abort(reason))  # its own thread receives it, and interrupts the handler
        try:
            async with asyncio.timeout(ABORT_PATIENCE):
                await self._process.wait()
        except TimeoutError:
            pass
        finally:
            await self.kill()

    async def kill(self) -> None:
        if self._process is not None:
            self.signal(signal.SIGKILL)
            self._kill_group()
            await self._process.wait()
        if self._reaping is not None:
            self._reaping.cancel()
        if self._stream is not None:
            self._stream.close()

    def memory_mb(self) -> float:
        """Its resident memory; 0 where that cannot be read."""
        try:
            with open(f"/proc/{self.pid}/statm") as statm:  # noqa: PTH123 - a virtual file, read often
                return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
        except (OSError, ValueError, IndexError):
            return 0.0


def _uses_django() -> bool:
    """Whether the worker's process has set up Django, so that handler processes must do so, too."""
    apps = getattr(sys.modules.get("django.apps"), "apps", None)
    return bool(getattr(apps, "ready", False)) and "DJANGO_SETTINGS_MODULE" in os.environ


async def _end_stream_after_exit(process: asyncio.subprocess.Process, stream: MessageStream) -> None:
    """The end of the stream cannot be relied on: a process that the handler forked may hold it open."""
    await process.wait()
    await asyncio.sleep(DRAIN_SECONDS)
    stream.end()


class ProcessPool:
    def __init__(self, database: DatabaseTarget, settings: ProcessSettings, services: LoopServices, kinds: Registry) -> None:
        self._database = database
        self._kinds = kinds
        self._settings = settings
        self._idle: list[HandlerProcess] = []
        self._busy: set[HandlerProcess] = set()
        self._too_large: set[HandlerProcess] = set()
        self._services = services

    async def run(self, ctx: Context) -> Any:
        """The handler's result, or what it raised. Raises `ProcessDied` when its process did."""
        run = ctx._run  # noqa: SLF001
        if run.deadline is not None:
            # The start of a process does not count as time of the handler: until it is called, this is added.
            run.deadline += START_PATIENCE
        process = await self._take(_run_job(run))
        try:
            message = await self._conversation(process, run)
        except asyncio.CancelledError:
            await process.end(run.abort_reason or "error")
            raise
        except BaseException:
            await process.kill()
            raise
        finally:
            await self._release(process)
        return _result(run.kind, message)

    async def call(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of a function, or what it raised. When the caller is canceled, its process is killed. Raises `ProcessDied`
        when its process did."""
        process = await self._take(call_message(fn, args, kwargs))
        try:
            message = await self._receive(process)
        except BaseException:
            await process.kill()
            raise
        finally:
            await self._release(process)
        match message:
            case None:
                raise ProcessDied(await process.cause())
            case FunctionReturned(result):
                return unpacked_value(result)
            case Raised(text, worth_another_attempt, exception):
                raise unpacked(exception, Remote(text, worth_another_attempt))
        raise ProcessDied(f"it sent a message that does not belong here: {type(message).__name__}")

    async def _take(self, work: RunJob | CallFunction) -> HandlerProcess:
        """A process that has received it. The death of an idle process must not count as a crash of this job."""
        while True:
            process = self._idle.pop() if self._idle else HandlerProcess()
            self._busy.add(process)
            try:
                if not process.tasks:
                    await process.spawn(self._database, self._kinds.home)
                process.send(work)
                taken_up = await self._receive(process) is not None
            except BaseException:
                await self._drop(process)
                raise
            if taken_up:
                return process
            was_new = not process.tasks
            await self._drop(process)
            if was_new:
                raise ProcessDied(f"before it began: {await process.cause()}")

    async def _drop(self, process: HandlerProcess) -> None:
        self._busy.discard(process)
        await process.kill()

    async def _release(self, process: HandlerProcess) -> None:
        """Keeps it for the next job, unless it must be replaced."""
        self._busy.discard(process)
        self._too_large.discard(process)
        process.tasks += 1
        if process.dead or process.tasks >= self._settings.max_tasks or self._too_big(process):
            await process.kill()
        else:
            self._idle.append(process)

    async def _conversation(self, process: HandlerProcess, run: Run) -> ToWorker:
        """Until the handler is done: what its process sends then."""
        while (message := await self._receive(process)) is not None:
            match message:
                case HandlerCalled():
                    run.deadline = None if run.time_limit is None else time.monotonic() + run.time_limit
                case SendProgress(percent, text):
                    self._services.progress(run, percent, text)
                case Heartbeat():
                    self._services.alive(run)
                case SendLogLine(level, text, fields):
                    self._services.log_line(run, level, text, fields)
                case Flush():
                    await self._services.flush(run)
                    process.send(Flushed())
                case InDoubt(settlement):
                    run.in_doubt = Settlement.from_wire(run, settlement)
                    run.owes_output = True  # it may have been written that it does
                case SettledItself(settlement, watched, owes_output):
                    run.settle_itself(settlement["what"])
                    run.owes_output = owes_output
                    self._services.settled(Settlement.from_wire(run, settlement), watched=watched)
                case _:
                    return message
        if process in self._too_large:
            raise ProcessDied(f"it used more than {self._settings.memory_mb} MB")
        raise ProcessDied(await process.cause())

    async def _receive(self, process: HandlerProcess) -> ToWorker | None:
        try:
            return await process.receive()
        except UnknownMessage as error:
            raise ProcessDied(str(error)) from None

    def watch(self) -> None:
        """Kills processes that use too much memory. Called periodically."""
        for process in self._busy:
            if process not in self._too_large and self._too_big(process):
                fields = {"child_pid": process.pid, "limit_mb": self._settings.memory_mb}
                log.error("a process uses more memory than its limit and is killed", extra=fields)
                self._too_large.add(process)
                process.signal(signal.SIGKILL)

    def _too_big(self, process: HandlerProcess) -> bool:
        return self._settings.memory_mb is not None and process.memory_mb() > self._settings.memory_mb

    async def close(self) -> None:
        processes = [*self._idle, *self._busy]
        self._idle.clear()
        for process in processes:
            await process.kill()


def _run_job(run: Run) -> RunJob:
    """What the other process needs to make the same run."""
    fn = run.kind.fn
    main = getattr(sys.modules.get("__main__"), "__file__", None) if fn.__module__ == "__main__" else None
    return RunJob(run.job, run.claim_id, run.worker_id, fn.__module__, main)


def _result(kind: Kind, message: ToWorker) -> Any:
    match message:
        case Returned(output):
            return kind.output.decode(output)
        case Decided(name, value, raised):
            outcome = Outcome.from_wire(name, value)
            if raised:
                raise outcome
            return outcome
        case StoppedByAbort(reason):
            raise Aborted(cast("AbortReason", reason))
        case Raised(text, worth_another_attempt, exception):
            raise unpacked(exception, Remote(text, worth_another_attempt))
    raise ProcessDied(f"it sent a message that does not belong here: {type(message).__name__}")
