"""Absurd: tasks whose steps are checkpoints, written by functions in the database."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from absurd_sdk import AsyncAbsurd

from benchmarks.engines.protocol import main

CONCURRENCY = 100
POLL = 0.005  # seconds


async def nothing(number: int) -> int:
    return number


class RunningAbsurd:
    def __init__(self, app: Any) -> None:
        self._app = app
        self._left = 0
        self._ended = asyncio.Event()

    async def take_steps(self, params: Any, ctx: Any) -> int:
        for number in range(params["count"]):
            await ctx.step("nothing", lambda number=number: nothing(number))
        self._left -= 1
        if not self._left:
            self._ended.set()
        return int(params["count"])

    async def run_workflows(self, steps: list[int]) -> None:
        self._left = len(steps)
        self._ended.clear()
        for count in steps:
            await self._app.spawn("take_steps", {"count": count}, queue="default")
        await self._ended.wait()


class AbsurdEngine:
    version: str = version("absurd-sdk")
    settings: str = f"concurrency={CONCURRENCY}, one process"

    async def prepare(self, dsn: str) -> None:
        control = str(Path(sys.executable).with_name("absurdctl"))
        for command in (["init", "--database", dsn], ["create-queue", "--database", dsn, "default"]):
            process = await asyncio.create_subprocess_exec(control, *command, stdout=asyncio.subprocess.DEVNULL)
            if await process.wait():
                raise SystemExit(f"absurdctl {command[0]} failed")

    @asynccontextmanager
    async def running(self, dsn: str) -> AsyncIterator[RunningAbsurd]:
        client, worker = AsyncAbsurd(dsn), AsyncAbsurd(dsn)
        running = RunningAbsurd(client)
        worker.register_task(name="take_steps")(running.take_steps)
        working = asyncio.create_task(worker.start_worker(concurrency=CONCURRENCY, poll_interval=POLL))
        yield running
        worker.stop_worker()
        await working
        await worker.close()
        await client.close()


if __name__ == "__main__":
    main(AbsurdEngine())
