"""The client processes of a campaign, seen from outside."""

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

from tenure.chaos.load import Task
from tenure.model.errors import TenureError

PATIENCE = 90.0  # seconds until what was asked for is answered, at the end


class Clients:
    def __init__(self, tasks: list[Task]) -> None:
        self._tasks = tasks
        self._processes: list[Process] = []
        self._reading: list[asyncio.Task[None]] = []
        self._told: dict[int, dict[str, Any]] = {}

    async def start(self) -> None:
        for task in self._tasks:
            command = [sys.executable, "-m", "tenure.chaos.client", str(os.getpid()), json.dumps(asdict(task))]
            with (Path(task.folder) / f"client-{task.place}.log").open("ab") as log:
                process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=log)
            self._processes.append(process)
            self._reading.append(asyncio.create_task(self._read(task.place, process)))

    def check(self) -> None:
        for task, process in zip(self._tasks, self._processes, strict=True):
            if process.returncode is not None:
                raise TenureError(f"client {task.place} ended by itself: see client-{task.place}.log in {task.folder}")

    @property
    def accepted(self) -> int:
        return sum(int(told["accepted"]) for told in self._told.values())

    def total(self, what: str) -> Counter[str]:
        counted: Counter[str] = Counter()
        for told in self._told.values():
            counted.update(told[what])
        return counted

    async def finish(self) -> None:
        """No more is asked for; all answers are waited for."""
        self.check()
        for process in self._processes:
            process.terminate()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(process.wait() for process in self._processes))
            await asyncio.gather(*self._reading)
        if any(process.returncode for process in self._processes):
            raise TenureError("a client failed: see its log")

    def kill(self) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.kill()

    async def _read(self, place: int, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self._told[place] = json.loads(line)
