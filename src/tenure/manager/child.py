"""A child process: imports the user's app and runs its jobs. The supervisor starts it through `child_start`."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from tenure import stop_requests
from tenure.builtin import add_builtin_kinds
from tenure.engine_settings import engine_settings
from tenure.lifeline import die_with, own_forks
from tenure.logs import name_worker, set_up_logging
from tenure.manager.event_relay import relayed_event
from tenure.manager.host import memory_mb
from tenure.manager.loading import load_app
from tenure.manager.loops import run_loop
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
    ToSupervisor,
    WorkerFoundCondemned,
    receive,
)
from tenure.manager.spec import ChildHello, ChildSpec
from tenure.model.errors import TenureError
from tenure.model.events import JobSettled, RunLost, WorkerLeaseLost, WorkerStarted, WorkerStopped, WorkerStopping
from tenure.model.kinds import Registry
from tenure.model.payloads import clean_text
from tenure.model.run_counts import RunCounter
from tenure.model.tracebacks import cut_to_user_code
from tenure.settings import Settings
from tenure.worker.claim.claimer import ClaimScope
from tenure.worker.engine import Engine
from tenure.worker.process.protocol import MessageStream

if TYPE_CHECKING:
    from tenure.app import Tenure

HEARTBEAT_INTERVAL = 1.0  # seconds
YOUNG_OBJECTS = 5_000
"""New objects between two runs of the garbage collector. Python's own number (700) is reached by every few claimed jobs, and
then nearly everything that the collector looks at is in use."""
UNUSABLE = 3  # exit code: the app cannot be loaded


def main() -> None:
    end = socket.socket(fileno=int(sys.argv[1]))
    die_with(int(sys.argv[2]))
    own_forks()
    set_up_logging()
    code = run_loop(ChildWorker(end).run())
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that ignore their abort cannot be joined. The fence rejects what they still try to write.
    os._exit(code)


def _prepare(kinds: Registry) -> None:
    """Builds the codecs before the first job waits for them. An annotation that cannot be built fails in the job that uses it."""
    for kind in kinds.values():
        with suppress(Exception):
            kind.input.prepare()
            kind.output.prepare()


def _spare_garbage_collector(unless_changed_from: tuple[int, int, int]) -> None:
    """What is loaded now stays as long as this process: the collector need not look at it again."""
    gc.collect()
    gc.freeze()
    if gc.get_threshold() == unless_changed_from:
        gc.set_threshold(YOUNG_OBJECTS, *unless_changed_from[1:])


class ChildWorker:
    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._engine: Engine | None = None
        self._stop = asyncio.Event()
        self._grace = 0.0
        self._runs = RunCounter()
        self._counts = False

    async def run(self) -> int:
        self._stream = await MessageStream.over(self._end)
        self._inbox = receive(self._stream)
        first = await anext(self._inbox)
        assert isinstance(first, LoadApp)
        spec = first.spec
        try:
            unchanged = gc.get_threshold()
            app = load_app(spec.app, spec.folder)
            add_builtin_kinds(app.kinds, app._runtime)  # noqa: SLF001 - not part of the public API
            _prepare(app.kinds)
            _spare_garbage_collector(unchanged)
            app.configure(**spec.flags)
            settings = app.settings.in_pool(spec.pool)
            hello = ChildHello.of(app.kinds, settings, spec, app.events)
        except TenureError as error:
            return self._unusable(str(error))
        except BaseException as error:  # noqa: BLE001 - user code may raise anything while it is imported
            cut_to_user_code(error)
            return self._unusable("".join(traceback.format_exception(error)))
        self._send(AppLoaded(hello))
        assigned = await anext(self._inbox, None)
        if not isinstance(assigned, AssignWorker):
            return 0
        self._name = assigned.name
        name_worker(self._name, given=spec.name is not None)
        await self._work(app, settings, hello, spec, assigned.worker_id)
        # Sent only here: if a handler calls os._exit(0), the exit code is that of a stop, but it is a crash.
        self._send(StoppedCleanly())
        await self._stream.drained()
        return 0

    async def _work(self, app: Tenure, settings: Settings, hello: ChildHello, spec: ChildSpec, worker_id: str) -> None:
        scope = ClaimScope(queues=hello.queues, capabilities=hello.capabilities, jobs=spec.jobs)
        engine = self._engine = Engine(
            settings.database,
            app.kinds,
            scope,
            worker_id,
            engine_settings(settings, hello.concurrency),
            notify=lambda wakeup: wakeups.notify(wakeup),  # noqa: PLW0108 - created below, from the engine's connections
            condemned=lambda: self._send(WorkerFoundCondemned()),
            needs_replacement=lambda: self._request_stop(hello.grace),
            events=app.events,
            name=self._name,
        )
        wakeups = engine.wakeups(engine.on_wakeup)
        app._connections.share(wakeups)  # noqa: SLF001 - not part of the public API
        self._events = app.events
        self._counts = spec.counts_runs
        if spec.counts_runs:
            app.events.subscribe((JobSettled,), self._runs.add)
            app.events.subscribe((RunLost,), self._runs.add_lost)
        self._engine.start()
        wakeups.start()
        app.events.emit(WorkerStarted(worker_id=UUID(worker_id), queues=tuple(hello.queues), worker=self._name))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._request_stop, hello.grace)
        if stop_requests.was_asked():
            self._request_stop(hello.grace)
        tasks = [
            asyncio.create_task(self._handle_messages(self._engine)),
            asyncio.create_task(self._send_heartbeats(self._engine)),
        ]
        await self._stop.wait()
        app.events.emit(WorkerStopping(worker_id=UUID(worker_id), grace=self._grace, worker=self._name))
        await self._engine.stop(self._grace)
        app.events.emit(WorkerStopped(worker_id=UUID(worker_id), worker=self._name))
        self._send_counts(self._engine)
        for task in tasks:
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await wakeups.stop()

    def _send_counts(self, engine: Engine) -> None:
        if counts := self._runs.take():
            self._send(ChildRuns(counts))
        if self._counts and (claims := engine.take_claim_count()):
            self._send(ChildClaims(claims))

    def _unusable(self, why: str) -> int:
        self._send(AppUnusable(clean_text(why)))
        return UNUSABLE

    def _send(self, message: ToSupervisor) -> None:
        self._stream.send(message)

    async def _handle_messages(self, engine: Engine) -> None:
        async for message in self._inbox:
            match message:
                case Stop(grace):
                    self._request_stop(grace)
                case RelayEvent(name, fields):
                    self._events.emit(relayed_event(name, fields))
                case SetPeers(peers):
                    engine.peers = peers
                case LoseLease(reason):
                    self._events.emit(WorkerLeaseLost(worker_id=UUID(engine.worker_id), worker=self._name))
                    engine.lose(reason)
                    self._request_stop(0.0)
        os._exit(0)  # the supervisor is gone, and the lease will expire

    def _request_stop(self, grace: float) -> None:
        """May be called twice, for a signal to the process group and a message of the supervisor; the shorter grace applies."""
        if self._stop.is_set():
            self._grace = min(self._grace, grace)
            if self._engine is not None:
                self._engine.hurry(grace)
            return
        self._grace = grace
        self._stop.set()

    async def _send_heartbeats(self, engine: Engine) -> None:
        while True:
            self._send(ChildHeartbeat(engine.running, engine.finished, memory_mb(), engine.unwritten))
            self._send_counts(engine)
            await asyncio.sleep(HEARTBEAT_INTERVAL)
