"""Processes of their own for handlers that compute: one job at a time each, started when needed, replaced when worn.

A cell's death is the crash of its one job and nobody else's. It is told to end by its signal, which also
interrupts the handler, and killed if it does not; it ends by itself when its worker is gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from tenure.model.errors import ProcessDied
from tenure.model.kinds import Kind, Registry
from tenure.model.outcomes import Cancel, Fail, Outcome, Snooze
from tenure.store.place import Place
from tenure.worker.calling import ABORT_PATIENCE
from tenure.worker.context import Context
from tenure.worker.desks import LoopDesk
from tenure.worker.remote import Remote, unpacked
from tenure.worker.runs import Run
from tenure.worker.settlements import Settlement
from tenure.worker.signals import Aborted
from tenure.worker.wire import Message, Wire

log = logging.getLogger("tenure")

LAST_WORDS = 0.2
"""Seconds for what a process said before it died to arrive."""


@dataclass(frozen=True, kw_only=True)
class CellSettings:
    max_tasks: int = 100
    """Jobs that a process runs before it is replaced: whatever leaks, leaks for so long only."""

    memory_mb: int | None = None
    """A process that holds more is killed, and its job has crashed. None: no limit."""


class Cell:
    """One process, as its worker sees it."""

    def __init__(self) -> None:
        self.tasks = 0
        self._process: asyncio.subprocess.Process | None = None
        self._wire: Wire | None = None
        self._burial: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def spawn(self, place: Place, home: str | None) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            wire = self._wire = await Wire.over(ours)
            self._inbox = wire.messages()
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tenure.worker.cell",
                str(theirs.fileno()),
                str(os.getpid()),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
            )
        self._burial = asyncio.create_task(_hang_up_after_death(self._process, wire))
        wire.send(place=asdict(place), path=sys.path, home=home, django=_uses_django())

    def send(self, **message: Any) -> None:
        assert self._wire is not None
        self._wire.send(**message)

    async def receive(self) -> Message | None:
        return await anext(self._inbox, None)

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
        """And what its handlers have started, unless that has made itself a group of its own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def end(self, reason: str) -> None:
        """Told, then made to."""
        assert self._process is not None
        self.send(abort=reason)  # its own thread hears it, and interrupts the handler
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
        if self._burial is not None:
            self._burial.cancel()
        if self._wire is not None:
            self._wire.close()

    def memory_mb(self) -> float:
        """What it holds in memory; 0 where that cannot be read."""
        try:
            with open(f"/proc/{self.pid}/statm") as statm:  # noqa: PTH123 - a virtual file, read often
                return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
        except (OSError, ValueError, IndexError):
            return 0.0


def _uses_django() -> bool:
    """Whether the worker's process has set up Django, so that a process for a job must do so, too."""
    apps = getattr(sys.modules.get("django.apps"), "apps", None)
    return bool(getattr(apps, "ready", False)) and "DJANGO_SETTINGS_MODULE" in os.environ


async def _hang_up_after_death(process: asyncio.subprocess.Process, wire: Wire) -> None:
    """The end of the line is no sign: a process that the handler forked may hold it open."""
    await process.wait()
    await asyncio.sleep(LAST_WORDS)
    wire.hang_up()


class Cells:
    def __init__(self, place: Place, settings: CellSettings, desk: LoopDesk, kinds: Registry) -> None:
        self._place = place
        self._kinds = kinds
        self._settings = settings
        self._idle: list[Cell] = []
        self._busy: set[Cell] = set()
        self._overfed: set[Cell] = set()
        self._desk = desk

    async def run(self, ctx: Context) -> Any:
        """The handler's result, or what it raised. Raises `ProcessDied` when its process did."""
        run = ctx._run  # noqa: SLF001
        cell = await self._take(run)
        try:
            message = await self._conversation(cell, run)
        except asyncio.CancelledError:
            await cell.end(run.abort_reason or "error")
            raise
        except BaseException:
            await cell.kill()
            raise
        finally:
            self._busy.discard(cell)
            self._overfed.discard(cell)
            await self._keep(cell)
        return _result(run.kind, message)

    async def _take(self, run: Run) -> Cell:
        """A process that has taken the job up. One that died while it was idle must not be this job's crash."""
        while True:
            cell = self._idle.pop() if self._idle else Cell()
            self._busy.add(cell)
            try:
                if not cell.tasks:
                    await cell.spawn(self._place, self._kinds.home)
                cell.send(run=_described(run))
                taken_up = await cell.receive() is not None
            except BaseException:
                await self._drop(cell)
                raise
            if taken_up:
                return cell
            was_new = not cell.tasks
            await self._drop(cell)
            if was_new:
                raise ProcessDied(f"before it began: {await cell.cause()}")

    async def _drop(self, cell: Cell) -> None:
        self._busy.discard(cell)
        await cell.kill()

    async def _keep(self, cell: Cell) -> None:
        """For the next job, unless it is worn."""
        cell.tasks += 1
        if cell.dead or cell.tasks >= self._settings.max_tasks or self._too_big(cell):
            await cell.kill()
        else:
            self._idle.append(cell)

    async def _conversation(self, cell: Cell, run: Run) -> Message:
        """Until the handler is done: what its process says then."""
        while (message := await cell.receive()) is not None:
            match message:
                case {"progress": [percent, text]}:
                    self._desk.progress(run, percent, text)
                case {"alive": _}:
                    self._desk.alive(run)
                case {"say": [level, text, fields]}:
                    self._desk.say(run, level, text, fields)
                case {"flush": _}:
                    await self._desk.flush(run)
                    cell.send(flushed=True)
                case {"in_doubt": told}:
                    run.in_doubt = Settlement(run, **told)
                    run.owes_output = True  # it may have been written that it does
                case {"settled": told}:
                    run.settled = run.settled_itself = True
                    run.owes_output = told["owes_output"]
                    self._desk.settled(Settlement(run, **told["settlement"]), watched=told["watched"])
                case _:
                    return message
        if cell in self._overfed:
            raise ProcessDied(f"it held more than {self._settings.memory_mb} MB")
        raise ProcessDied(await cell.cause())

    def watch(self) -> None:
        """Now and then: a process that grew too large is killed under its job."""
        for cell in self._busy:
            if cell not in self._overfed and self._too_big(cell):
                log.error("process %d holds more than %d MB and is killed", cell.pid, self._settings.memory_mb)
                self._overfed.add(cell)
                cell.signal(signal.SIGKILL)

    def _too_big(self, cell: Cell) -> bool:
        return self._settings.memory_mb is not None and cell.memory_mb() > self._settings.memory_mb

    async def close(self) -> None:
        cells = [*self._idle, *self._busy]
        self._idle.clear()
        for cell in cells:
            await cell.kill()


def _described(run: Run) -> Message:
    """What the other process needs to make the same run."""
    fn = run.kind.fn
    main = getattr(sys.modules.get("__main__"), "__file__", None) if fn.__module__ == "__main__" else None
    return {
        "module": fn.__module__,
        "main": main,
        "kind": run.kind.name,
        "row": [
            run.job_id, run.kind.name, run.queue, 0, 0, run.attempt, run.max_attempts, run.crashes, run.fence, run.input,
            run.timeout, run.auth, run.meta,
        ],
        "claim_id": run.claim_id,
        "worker_id": run.worker_id,
    }  # fmt: skip


def _result(kind: Kind, message: Message) -> Any:
    outcomes: dict[str, Callable[[Any], Outcome]] = {"snooze": _snooze, "fail": Fail, "cancel": Cancel}
    match message:
        case {"output": text}:
            return kind.output.decode(text)
        case {"outcome": name, "value": value, "raised": raised}:
            outcome = outcomes[name](value)
            if raised:
                raise outcome
            return outcome
        case {"aborted": reason}:
            raise Aborted(reason)
        case {"error": text, "wanted": wanted, "raised": told}:
            raise unpacked(told, Remote(text, wanted))
    # Its values may be the job's data, and this text is logged.
    raise ProcessDied(f"it sent a message that is not understood: {', '.join(map(str, message)) or 'nothing'}")


def _snooze(when: float | str) -> Snooze:
    return Snooze(until=datetime.fromisoformat(when)) if isinstance(when, str) else Snooze(when)
