"""A child process: imports the user's app and runs its jobs. Started by the supervisor by way of `child_start`."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from tenure import stop_requests
from tenure.inprocess import engine_settings
from tenure.lifeline import die_with, own_forks
from tenure.logs import name_worker, set_up_logging
from tenure.manager.event_relay import told_event
from tenure.manager.loading import load_app
from tenure.manager.loops import run_loop
from tenure.manager.memory import memory_mb
from tenure.manager.spec import ChildSpec, Hello
from tenure.model.errors import TenureError
from tenure.model.events import WorkerLeaseLost, WorkerStarted, WorkerStopped, WorkerStopping
from tenure.model.payloads import clean_text
from tenure.settings import Settings
from tenure.worker.claim.claimer import Scope
from tenure.worker.engine import Engine
from tenure.worker.process.protocol import MessageStream

if TYPE_CHECKING:
    from tenure.app import Tenure

BEAT = 1.0  # seconds between two signs of life to the supervisor
UNUSABLE = 3  # exit code: the app cannot be loaded


def main() -> None:
    end = socket.socket(fileno=int(sys.argv[1]))
    die_with(int(sys.argv[2]))
    own_forks()
    set_up_logging()
    code = run_loop(Child(end).run())
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that do not listen cannot be joined; what they still want to write is refused by their fence.
    os._exit(code)


class Child:
    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._engine: Engine | None = None
        self._stop = asyncio.Event()
        self._grace = 0.0

    async def run(self) -> int:
        self._wire = await MessageStream.over(self._end)
        self._inbox = self._wire.messages()
        spec = ChildSpec.from_message((await anext(self._inbox))["spec"])
        try:
            app = load_app(spec.app, spec.folder)
            app.configure(**spec.flags)
            settings = app.settings.in_pool(spec.pool)
            hello = Hello.of(app.kinds, settings, spec, app.events)
        except TenureError as error:
            return self._unusable(str(error))
        except BaseException:  # noqa: BLE001 - whatever user code raises while it is imported
            return self._unusable(traceback.format_exc())
        self._wire.send(hello=hello.to_message())
        welcome = await anext(self._inbox, None)
        if welcome is None or "worker_id" not in welcome:
            return 0
        self._name = welcome["name"]
        name_worker(self._name, given=spec.name is not None)
        await self._work(app, settings, hello, spec, welcome["worker_id"])
        # Said only here: a handler that calls os._exit(0) looks like a stop, and is a crash.
        self._wire.send(bye=True)
        await self._wire.drained()
        return 0

    async def _work(self, app: Tenure, settings: Settings, hello: Hello, spec: ChildSpec, worker_id: str) -> None:
        scope = Scope(queues=hello.queues, capabilities=hello.capabilities, jobs=spec.jobs)
        engine = self._engine = Engine(
            settings.database,
            app.kinds,
            scope,
            worker_id,
            engine_settings(settings, hello.concurrency),
            tell=lambda word: wakeups.tell(word),  # noqa: PLW0108 - they are made of the engine's connections, below
            condemned=lambda: self._wire.send(condemned=True),
            worn_out=lambda: self._leave(hello.grace),
            events=app.events,
            name=self._name,
        )
        wakeups = engine.wakeups(engine.hear)
        app._connections.share(wakeups)  # noqa: SLF001 - no part of what users see
        self._events = app.events
        self._engine.start()
        wakeups.start()
        app.events.emit(WorkerStarted(worker_id=UUID(worker_id), queues=tuple(hello.queues), worker=self._name))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._leave, hello.grace)
        if stop_requests.was_asked():
            self._leave(hello.grace)
        tasks = [asyncio.create_task(self._obey(self._engine)), asyncio.create_task(self._beat(self._engine))]
        await self._stop.wait()
        app.events.emit(WorkerStopping(worker_id=UUID(worker_id), grace=self._grace, worker=self._name))
        await self._engine.stop(self._grace)
        app.events.emit(WorkerStopped(worker_id=UUID(worker_id), worker=self._name))
        for task in tasks:
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await wakeups.stop()

    def _unusable(self, why: str) -> int:
        self._wire.send(unusable=clean_text(why))
        return UNUSABLE

    async def _obey(self, engine: Engine) -> None:
        async for message in self._inbox:
            match message:
                case {"stop": grace}:
                    self._leave(grace)
                case {"event": name, "fields": fields}:
                    self._events.emit(told_event(name, fields))
                case {"crowd": crowd}:
                    engine.crowd = crowd
                case {"lose": reason}:
                    self._events.emit(WorkerLeaseLost(worker_id=UUID(engine.worker_id), worker=self._name))
                    engine.lose(reason)
                    self._leave(0.0)
        os._exit(0)  # the supervisor is gone, and our lease with it

    def _leave(self, grace: float) -> None:
        """The same wish may come twice, by a signal to the whole group and from the supervisor; a shorter one counts."""
        if self._stop.is_set():
            self._grace = min(self._grace, grace)
            if self._engine is not None:
                self._engine.hurry(grace)
            return
        self._grace = grace
        self._stop.set()

    async def _beat(self, engine: Engine) -> None:
        while True:
            self._wire.send(beat=engine.running, done=engine.finished, memory=memory_mb())
            await asyncio.sleep(BEAT)
