"""The process of a handler: runs one job at a time for its worker, which starts it."""

from __future__ import annotations

import asyncio
import importlib
import os
import queue
import runpy
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, cast

from tenure.lifeline import die_with, own_forks
from tenure.logs import set_up_logging
from tenure.model.current import current_run
from tenure.model.errors import ConfigError
from tenure.model.kinds import Registry
from tenure.model.outcomes import Outcome
from tenure.model.payloads import clean_text, describe_exception
from tenure.model.reruns import rerunning
from tenure.model.tracebacks import cut_to_user_code
from tenure.store import blockers
from tenure.store.blockers import BlockerRow
from tenure.store.borrowed import borrow
from tenure.store.target import DatabaseTarget
from tenure.worker.process.exceptions import HANDLER_MAIN, packed
from tenure.worker.process.functions import called
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
    TakenUp,
    ToProcess,
    ToWorker,
    from_message,
)
from tenure.worker.process.protocol import decode, encode
from tenure.worker.run import settlement as settlements
from tenure.worker.run.abort import Aborted, AbortReason
from tenure.worker.run.blocker_results import MOST_BLOCKERS
from tenure.worker.run.calling import call_plain, on_loop
from tenure.worker.run.context import Context, context_of
from tenure.worker.run.resources import Resources
from tenure.worker.run.run import Run
from tenure.worker.run.settlement import Settlement
from tenure.worker.run.transactions import settle_open, settle_open_sync
from tenure.worker.run.updates import LONGEST_LINE, LONGEST_MESSAGE, plain

SEND_PROGRESS_EVERY = 0.05  # seconds

_THREADS = 4  # connections a single handler may hold at once


def main() -> None:
    os.setpgrp()  # the worker kills this whole group: what a handler starts does not outlive its process
    connection = WorkerConnection(socket.socket(fileno=int(sys.argv[1])))
    die_with(int(sys.argv[2]))
    own_forks()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the worker decides
    signal.signal(signal.SIGTERM, connection.on_sigterm)
    set_up_logging()
    hello = connection.next()
    assert isinstance(hello, Hello)
    sys.path[:] = hello.path
    services = ProcessServices(connection, Resources(hello.database, _THREADS))
    environment = ProcessEnvironment(hello.home, django=hello.django)
    while True:
        given = connection.next()
        connection.send(TakenUp())
        if isinstance(given, CallFunction):
            connection.send(_returned(environment, given))
        else:
            assert isinstance(given, RunJob)
            _serve(services, environment, given)


class WorkerConnection:
    """Messages to and from the worker. A thread reads, so that an abort arrives while the handler computes."""

    def __init__(self, end: socket.socket) -> None:
        self._process = os.getpid()
        self._end = end
        end.set_inheritable(False)
        self._file = end.makefile("rwb")
        self._lock = threading.RLock()
        self._messages: queue.SimpleQueue[ToProcess] = queue.SimpleQueue()
        self._flushed = threading.Event()
        self.run: Run | None = None
        os.register_at_fork(after_in_child=self._cut)
        threading.Thread(target=self._read, daemon=True, name="tenure connection").start()

    def send(self, message: ToWorker) -> None:
        self.check_process()
        with self._lock:
            self._file.write(encode(message))
            self._file.flush()

    def check_process(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "this process was forked by the handler: only the process that runs the handler can use its Context; send it "
                "what you have to report"
            )

    def next(self) -> ToProcess:
        return self._messages.get()

    def flush(self) -> None:
        """Returns when the worker has written all that was reported."""
        self._flushed.clear()
        self.send(Flush())
        self._flushed.wait()

    def on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        """Between two steps of a plain handler: the abort reaches it as an exception, and its clean-up runs."""
        run = self.run
        # The worker handles a SIGTERM from elsewhere, as to all processes of a service; this process ignores it.
        if run is not None and run.abort_reason is not None:
            raise Aborted(run.abort_reason)

    def _cut(self) -> None:
        """In a process that the handler has forked: it cannot report for the job, and must not hold the connection open."""
        with suppress(OSError):
            # Not closed: the number would be given to another file, which the objects here would close later.
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, self._end.fileno(), inheritable=False)
            os.close(nothing)

    def _read(self) -> None:
        for message in self._received():
            match message:
                case Abort(reason):
                    if self.run is None:
                        os._exit(0)  # the handler has not begun, or is done
                    self.run.signal.abort(cast("AbortReason", reason))
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
                case Flushed():
                    self._flushed.set()
                case _:
                    self._messages.put(message)
        os._exit(0)  # the worker is gone, and with it the claim

    def _received(self) -> Iterator[ToProcess]:
        for line in self._file:
            if (message := decode(line)) is not None:
                yield from_message(message)


class ProcessServices:
    def __init__(self, connection: WorkerConnection, resources: Resources) -> None:
        self.resources = resources
        self.connection = connection
        self.kinds = Registry()
        self._progress: tuple[float, str | None] | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def find_blockers(self, run: Run) -> list[BlockerRow]:
        """Read here, and not by the worker: the results of many chains are larger than a message may be."""
        with self.resources.pools.connection_sync() as connection:
            return borrow(connection).fetch_sync(blockers.find(run.job_id, most=MOST_BLOCKERS), self.resources.database.schema)

    def progress(self, run: Run, percent: float, message: str | None) -> None:  # noqa: ARG002 - one run at a time
        """Only the latest is sent, a moment later: a tight loop must not flood the connection."""
        # Here, not when it is sent: the timer's thread could only print a traceback, and a thread of the original may have held
        # the lock at the fork.
        self.connection.check_process()
        with self._lock:
            self._progress = (percent, message)
            if self._timer is None:
                self._timer = threading.Timer(SEND_PROGRESS_EVERY, self.send_progress)
                self._timer.daemon = True
                self._timer.start()

    def send_progress(self) -> None:
        with self._lock:
            latest, self._progress = self._progress, None
            timer, self._timer = self._timer, None
            if timer is not None:
                timer.cancel()
            if latest is not None:
                percent, message = latest
                self.connection.send(SendProgress(percent, None if message is None else clean_text(message, LONGEST_MESSAGE)))

    def alive(self, run: Run) -> None:  # noqa: ARG002
        self.connection.send(Heartbeat())

    def log_line(self, run: Run, level: str, message: str, fields: dict[str, Any]) -> None:  # noqa: ARG002
        kept = {name: plain(value) for name, value in fields.items()}
        self.connection.send(SendLogLine(level, clean_text(message, LONGEST_LINE), kept))

    async def flush(self, run: Run) -> None:
        await asyncio.to_thread(self.flush_sync, run)

    def flush_sync(self, run: Run) -> None:  # noqa: ARG002
        self.send_progress()
        self.connection.flush()

    def settled(self, settlement: Settlement, *, watched: bool) -> None:
        self.connection.send(SettledItself(settlement.to_wire(), watched, settlement.run.owes_output))

    def doubt(self, settlement: Settlement) -> None:
        self.connection.send(InDoubt(settlement.to_wire()))


class ProcessEnvironment:
    """The modules that jobs need, imported once per process."""

    def __init__(self, home: str | None, *, django: bool) -> None:
        self._home = home
        self._django = django
        self._mains: dict[str, dict[str, Any]] = {}

    def kinds(self, given: RunJob, database: DatabaseTarget) -> Registry:
        """Imports the app's module, then the job's. Returns the app's registry, after giving the app the worker's settings."""
        module, name = given.module, given.job.kind
        for value in self.names(given).values():
            runtime = getattr(value, "_runtime", None)  # both apps and jobs have one
            kinds = getattr(runtime, "kinds", None)
            if runtime is not None and isinstance(kinds, Registry) and name in kinds:
                runtime.configure(
                    dsn=database.dsn, schema=database.schema, pooled=database.pooled, listen_dsn=database.listen_dsn
                )
                return kinds
        raise ConfigError(
            f"module {module} has no job {name!r} at its top level, so another process cannot find it: move it there"
        )

    def names(self, given: RunJob | CallFunction) -> dict[str, Any]:
        """Of the module in which the handler or function is defined."""
        self._prepare()
        return self._run_main(given.main) if given.main else vars(importlib.import_module(given.module))

    def _prepare(self) -> None:
        if self._django:
            import django  # noqa: PLC0415 - the worker uses it

            django.setup()  # as in the worker's process; without it no module with models can be imported
            self._django = False
        if self._home is not None:
            importlib.import_module(self._home)  # may set up what jobs' modules need
            self._home = None

    def _run_main(self, path: str) -> dict[str, Any]:
        if path not in self._mains:
            with rerunning(path):
                self._mains[path] = runpy.run_path(path, run_name=HANDLER_MAIN)
        return self._mains[path]


def _returned(environment: ProcessEnvironment, given: CallFunction) -> ToWorker:
    try:
        return FunctionReturned(called(given, environment.names(given)))
    except BaseException as error:  # noqa: BLE001 - SystemExit in a function must end the step, not the process
        return _failure(None, error)


def _serve(services: ProcessServices, environment: ProcessEnvironment, given: RunJob) -> None:
    connection = services.connection
    try:
        kinds = environment.kinds(given, services.resources.database)
        run = Run(kinds[given.job.kind], given.job, given.claim_id, given.worker_id)
        services.kinds = kinds
        if run.system.blockers:
            run.blockers = services.find_blockers(run)
    except BaseException as error:  # noqa: BLE001 - user code may raise anything while it is imported
        connection.send(_failure(None, error))
        return
    connection.run = run
    connection.send(HandlerCalled())
    try:
        answer = _answer(services, run, kinds)
    finally:
        connection.run = None
    services.send_progress()
    connection.send(answer)
    if run.signal.aborted:
        os._exit(0)  # the state that an aborted handler left behind cannot be trusted


def _answer(services: ProcessServices, run: Run, kinds: Registry) -> ToWorker:
    current_run.set(run)
    ctx = context_of(run, services)
    try:
        result = (
            asyncio.run(_call_async(ctx, services, kinds)) if run.kind.signature.is_async else _call_plain(ctx, services, kinds)
        )
        if isinstance(result, Outcome):
            return _decided(result, raised=False)
        return Returned(run.kind.output.encode(result).decode())
    except Outcome as outcome:
        try:
            return _decided(outcome, raised=True)
        except Exception as error:  # noqa: BLE001 - a subclass that did not call its parent's __init__
            return _failure(run, error)
    except Aborted as aborted:
        return StoppedByAbort(aborted.reason)
    except BaseException as error:  # noqa: BLE001 - SystemExit in a handler must end the job, not the process
        return _failure(run, error)


def _call_plain(ctx: Context, services: ProcessServices, kinds: Registry) -> Any:
    run = ctx._run  # noqa: SLF001
    result = call_plain(ctx, kinds)
    if run.transaction is not None:
        settle_open_sync(run, services, lambda: settlements.of_result(run, result))
    return result


async def _call_async(ctx: Context, services: ProcessServices, kinds: Registry) -> Any:
    run = ctx._run  # noqa: SLF001
    try:
        result = await on_loop(kinds, ctx)
        if run.transaction is not None:
            await settle_open(run, services, lambda: settlements.of_result(run, result))
    finally:
        await services.resources.close()  # its pools belong to this handler's loop
        services.resources = Resources(services.resources.database, _THREADS)
    return result


def _decided(outcome: Outcome, *, raised: bool) -> Decided:
    name, value = outcome.to_wire()
    return Decided(name, value, raised)


def _failure(run: Run | None, error: BaseException) -> Raised:
    wanted = run is None or settlements.worth_another_attempt(run, error)
    cut_to_user_code(error)
    return Raised(describe_exception(error), wanted, packed(error))


if __name__ == "__main__":
    main()
