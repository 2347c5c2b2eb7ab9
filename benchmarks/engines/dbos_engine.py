"""DBOS: workflows run in the process that starts them; each step is a row."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from dbos import DBOS

from benchmarks.engines.protocol import main


async def _nothing(number: int) -> int:
    return number


async def _take_steps(count: int) -> int:
    for number in range(count):
        await nothing(number)
    return count


nothing = DBOS.step()(_nothing)
take_steps = DBOS.workflow()(_take_steps)


class RunningDbos:
    async def run_workflows(self, steps: list[int]) -> None:
        handles = [await DBOS.start_workflow_async(take_steps, count) for count in steps]
        for handle in handles:
            await handle.get_result()


class DbosEngine:
    version: str = version("dbos")
    settings: str = "workflows on the event loop of their caller"

    async def prepare(self, dsn: str) -> None:
        _configure(dsn)
        DBOS.launch()
        DBOS.destroy()

    @asynccontextmanager
    async def running(self, dsn: str) -> AsyncIterator[RunningDbos]:
        _configure(dsn)
        DBOS.launch()
        yield RunningDbos()
        DBOS.destroy()


def _configure(dsn: str) -> None:
    config: Any = {"name": "benchmark", "system_database_url": dsn, "run_admin_server": False, "log_level": "WARNING"}
    DBOS(config=config)


if __name__ == "__main__":
    main(DbosEngine())
