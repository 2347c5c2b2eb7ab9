"""Starts the client processes of a campaign, and collects their counts."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tenure.chaos.client_process import ClientTask
from tenure.model.errors import TenureError

FINISH_TIMEOUT = 90.0  # seconds for the answers to all calls, at the end


class ClientProcesses:
    def __init__(self, tasks: list[ClientTask]) -> None:
        self._tasks = tasks
        self._processes: list[Process] = []
        self._reading: list[asyncio.Task[None]] = []
        self._counts: dict[int, dict[str, Any]] = {}

    async def start(self) -> None:
        for task in self._tasks:
            command = [sys.executable, "-m", "tenure.chaos.client_process", str(os.getpid()), json.dumps(asdict(task))]
            with (Path(task.folder) / f"client-{task.number}.log").open("ab") as log:
                process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=log)
            self._processes.append(process)
            self._reading.append(asyncio.create_task(self._read(task.number, process)))

    def check(self) -> None:
        for task, process in zip(self._tasks, self._processes, strict=True):
            if process.returncode is not None:
                raise TenureError(f"client {task.number} exited by itself: see client-{task.number}.log in {task.folder}")

    @property
    def accepted(self) -> int:
        return sum(int(counts["accepted"]) for counts in self._counts.values())

    def total(self, what: str) -> Counter[str]:
        total: Counter[str] = Counter()
        for counts in self._counts.values():
            total.update(counts[what])
        return total

    async def finish(self) -> None:
        """Ends the clients: they make no more calls, and wait for all answers."""
        self.check()
        for process in self._processes:
            process.terminate()
        async with asyncio.timeout(FINISH_TIMEOUT):
            await asyncio.gather(*(process.wait() for process in self._processes))
            await asyncio.gather(*self._reading)
        if any(process.returncode for process in self._processes):
            raise TenureError("a client process failed: see its log")

    def kill(self) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.kill()

    async def _read(self, number: int, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self._counts[number] = json.loads(line)
