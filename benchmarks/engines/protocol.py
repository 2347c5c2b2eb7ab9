"""What the harness asks of each engine: a command line, and JSON lines on standard output.

Runs in the virtual environment of each engine, so only the standard library and the protocol of the peers are imported.

| command | what it does | what it prints |
|---|---|---|
| `describe` | nothing | `Described` |
| `prepare` | creates the tables in an empty database | `Done` |
| `steps` | runs one workflow of so many steps that do nothing | `Timed` |
| `starts` | starts so many workflows of one step at once, and waits for all of them | `Timed` |
"""

from __future__ import annotations

import argparse
import time
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from benchmarks.peers.protocol import Described, Done, Timed, run, send

WARMUP = 20
"""Workflows of one step before the clock starts: they open connections and prepare statements."""


class RunningEngine(Protocol):
    """Ready to run workflows."""

    async def run_workflows(self, steps: list[int]) -> None:
        """For each number, starts a workflow of that many steps. Returns when all of them have ended."""


class FlowEngine(Protocol):
    version: str
    settings: str

    async def prepare(self, dsn: str) -> None: ...

    def running(self, dsn: str) -> AbstractAsyncContextManager[RunningEngine]: ...


def main(engine: FlowEngine) -> None:
    parser = argparse.ArgumentParser(description="One measured engine; see benchmarks/engines/protocol.py.")
    parser.add_argument("command", choices=("describe", "prepare", "steps", "starts"))
    parser.add_argument("--dsn", default="")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0, help="not used")
    options = parser.parse_args()
    if options.command == "describe":
        send(Described(engine.version, engine.settings, left="", succeeded=None, own_processes=False))
    elif options.command == "prepare":
        run(engine.prepare(options.dsn))
        send(Done())
    else:
        send(run(_measure(engine, options.dsn, [options.count] if options.command == "steps" else [1] * options.count)))


async def _measure(engine: FlowEngine, dsn: str, steps: list[int]) -> Timed:
    async with engine.running(dsn) as running:
        await running.run_workflows([1] * WARMUP)
        began = time.perf_counter()
        await running.run_workflows(steps)
        seconds = time.perf_counter() - began
    return Timed(len(steps), sum(steps), seconds)
