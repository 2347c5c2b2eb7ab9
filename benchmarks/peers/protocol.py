"""What the harness asks of each measured queue: a command line, and JSON lines on standard output.

Only the standard library is imported here: this module runs in the virtual environment of each peer.

| command | what it does | what it prints |
|---|---|---|
| `describe` | nothing | `Described` |
| `prepare` | creates the tables in an empty database | `Done` |
| `enqueue-bulk` | enqueues no-op jobs with the fastest call for many | `Timed` |
| `enqueue-single` | enqueues no-op jobs one after the other | `Timed` |
| `pulse` | enqueues jobs with random gaps, so that each finds an idle worker | `Timed` |
| `steady` | enqueues jobs at a fixed rate | `Timed` |
| `worker` | prints `Ready`, waits for a line on standard input, then runs jobs until it is killed | `Age` for each timed job |
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

WARMUP = 20
"""Jobs enqueued before the clock starts: they open connections and prepare statements."""


@dataclass(frozen=True)
class Described:
    version: str
    settings: str
    """What differs from the defaults of the worker."""
    left: str
    """A statement that returns a row as long as a job has not finished. It is cheap while the newest job waits. `%(jobs)s` is
    the number of all jobs that were enqueued."""
    succeeded: str | None
    """A statement that returns the number of jobs that succeeded, where the queue records them."""
    own_processes: bool
    """Whether one worker starts its processes by itself."""


@dataclass(frozen=True)
class Done:
    pass


@dataclass(frozen=True)
class Ready:
    pass


@dataclass(frozen=True)
class Timed:
    jobs: int
    """All that were enqueued, including the warm-up."""
    timed: int
    seconds: float


@dataclass(frozen=True)
class Age:
    age_ms: float
    """From just before the enqueue to the first line of the handler."""


Message = Described | Done | Ready | Timed | Age

_MESSAGES: dict[str, type[Message]] = {kind.__name__: kind for kind in (Described, Done, Ready, Timed, Age)}


class QueueClient(Protocol):
    """Connected, and used by one task."""

    async def enqueue_bulk(self, count: int) -> None: ...

    async def enqueue_noop(self) -> None: ...

    async def enqueue_stamp(self, sent: int) -> None:
        """A job whose handler calls `print_age(sent)`."""


class JobQueue(Protocol):
    @property
    def described(self) -> Described: ...

    async def prepare(self, dsn: str) -> None: ...

    def client(self, dsn: str) -> AbstractAsyncContextManager[QueueClient]: ...

    async def work(self, dsn: str, processes: int) -> None:
        """Connects, calls `await_go`, then runs jobs."""


def main(queue: JobQueue) -> None:
    options = _parser().parse_args()
    if options.command == "describe":
        send(queue.described)
    elif options.command == "prepare":
        run(queue.prepare(options.dsn))
        send(Done())
    elif options.command == "worker":
        run(queue.work(options.dsn, options.processes))
    else:
        send(run(_enqueue(queue, options)))


def send(message: Message) -> None:
    print(json.dumps({"message": type(message).__name__, **asdict(message)}), flush=True)


def receive(line: str) -> Message | None:
    """None for anything else that a peer prints."""
    try:
        fields = json.loads(line)
        return _MESSAGES[fields.pop("message")](**fields)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def print_age(sent: int) -> None:
    """`sent` is from `time.time_ns`, in another process on the same machine."""
    send(Age((time.time_ns() - sent) / 1e6))


def await_go() -> None:
    """The measured time begins when the harness writes a line. It blocks the event loop: nothing else is to be done before."""
    send(Ready())
    if not sys.stdin.readline():
        raise SystemExit("the harness has gone")


def run(main: Coroutine[Any, Any, T]) -> T:
    """On uvloop where it is installed: each peer gets what makes it fast."""
    try:
        with_uvloop: Callable[[Coroutine[Any, Any, T]], T] = import_module("uvloop").run
    except ImportError:
        return asyncio.run(main)
    return with_uvloop(main)


async def _enqueue(queue: JobQueue, options: argparse.Namespace) -> Timed:
    async with queue.client(options.dsn) as client:
        if options.command in ("pulse", "steady"):
            return await (_pulse if options.command == "pulse" else _steady)(client, options)
        for _ in range(WARMUP):
            await client.enqueue_noop()
        began = time.perf_counter()
        if options.command == "enqueue-bulk":
            await client.enqueue_bulk(options.count)
        else:
            for _ in range(options.count):
                await client.enqueue_noop()
        return Timed(WARMUP + options.count, options.count, time.perf_counter() - began)


async def _pulse(client: QueueClient, options: argparse.Namespace) -> Timed:
    began = time.perf_counter()
    for _ in range(options.count):
        await client.enqueue_stamp(time.time_ns())
        await asyncio.sleep(random.uniform(0.04, 0.16))
    return Timed(options.count, options.count, time.perf_counter() - began)


async def _steady(client: QueueClient, options: argparse.Namespace) -> Timed:
    """Each job has its own time to be enqueued: a slow enqueue delays none of the later ones."""
    began = time.perf_counter()
    for number in range(options.count):
        await asyncio.sleep(max(0.0, began + number / options.rate - time.perf_counter()))
        await client.enqueue_stamp(time.time_ns())
    return Timed(options.count, options.count, time.perf_counter() - began)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="One measured queue; see benchmarks/peers/protocol.py.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("describe")
    for name in ("prepare", "enqueue-bulk", "enqueue-single", "pulse", "steady", "worker"):
        command = commands.add_parser(name)
        command.add_argument("--dsn", required=True)
        command.add_argument("--count", type=int, default=0)
        command.add_argument("--rate", type=float, default=100.0)
        command.add_argument("--processes", type=int, default=1)
    return parser
