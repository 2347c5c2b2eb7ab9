"""The process of a cell: runs one handler at a time for its worker. Started by the worker, never by hand."""

from __future__ import annotations

import asyncio
import importlib
import json
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
from typing import Any

from tenure.lifeline import die_with, own_forks
from tenure.logs import set_up_logging
from tenure.model.current import current_run
from tenure.model.errors import ConfigError
from tenure.model.kinds import Registry
from tenure.model.outcomes import Cancel, Fail, Outcome, Snooze
from tenure.model.payloads import clean_text, describe_exception
from tenure.model.reruns import rerunning
from tenure.store.target import DatabaseTarget
from tenure.worker.process.exceptions import CELL_MAIN, packed
from tenure.worker.run import settlement as settlements
from tenure.worker.run.abort import Aborted
from tenure.worker.run.calling import call_plain, on_loop
from tenure.worker.run.context import Context
from tenure.worker.run.resources import Resources
from tenure.worker.run.run import Run
from tenure.worker.run.settlement import Settlement
from tenure.worker.run.transactions import settle_open, settle_open_sync
from tenure.worker.run.updates import LONGEST_LINE, LONGEST_MESSAGE, plain

TELL_EVERY = 0.05  # seconds between two words about progress

_THREADS = 4  # connections a single handler may hold at once


def main() -> None:
    os.setpgrp()  # the worker ends this whole group with us: what a handler starts does not outlive its process
    line = WorkerConnection(socket.socket(fileno=int(sys.argv[1])))
    die_with(int(sys.argv[2]))
    own_forks()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the worker decides
    signal.signal(signal.SIGTERM, line.on_sigterm)
    set_up_logging()
    hello = line.next()
    sys.path[:] = hello["path"]
    services = ProcessServices(line, Resources(DatabaseTarget(**hello["database"]), _THREADS))
    surroundings = ProcessEnvironment(hello["home"], django=hello["django"])
    while True:
        job = line.next()["run"]
        line.send(taken_up=True)
        _serve(services, surroundings, job)


class WorkerConnection:
    """Messages to and from the worker. A thread reads, so that an abort arrives while the handler computes."""

    def __init__(self, end: socket.socket) -> None:
        self._process = os.getpid()
        self._end = end
        end.set_inheritable(False)
        self._file = end.makefile("rwb")
        self._lock = threading.RLock()
        self._messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._flushed = threading.Event()
        self.run: Run | None = None
        os.register_at_fork(after_in_child=self._cut)
        threading.Thread(target=self._read, daemon=True, name="tenure line").start()

    def send(self, **message: Any) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "this process was forked by the handler: only the process that runs the handler can use its Context; pass back "
                "to it what you have to report"
            )
        with self._lock:
            self._file.write(json.dumps(message).encode() + b"\n")
            self._file.flush()

    def next(self) -> dict[str, Any]:
        return self._messages.get()

    def flush(self) -> None:
        """Returns when the worker has written all that was said."""
        self._flushed.clear()
        self.send(flush=True)
        self._flushed.wait()

    def on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        """Between two steps of a plain handler: the abort reaches it as an exception, and its clean-up runs."""
        run = self.run
        # A SIGTERM from elsewhere, as to all processes of a service, is for the worker to understand, not for us.
        if run is not None and run.abort_reason is not None:
            raise Aborted(run.abort_reason)

    def _cut(self) -> None:
        """In a process that the handler has forked: it cannot answer for the job, and does not keep the line open."""
        with suppress(OSError):
            # Not closed: the number would be given to another file, which the objects here would close later.
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, self._end.fileno(), inheritable=False)
            os.close(nothing)

    def _read(self) -> None:
        for message in self._lines():
            match message:
                case {"abort": reason}:
                    if self.run is None:
                        os._exit(0)  # the handler has not begun, or is done
                    self.run.signal.abort(reason)
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
                case {"flushed": _}:
                    self._flushed.set()
                case _:
                    self._messages.put(message)
        os._exit(0)  # the worker is gone, and our claim with it

    def _lines(self) -> Iterator[dict[str, Any]]:
        for line in self._file:
            if line.endswith(b"\n"):
                yield json.loads(line)


class ProcessServices:
    def __init__(self, line: WorkerConnection, resources: Resources) -> None:
        self.resources = resources
        self._line = line
        self._progress: tuple[float, str | None] | None = None
        self._teller: threading.Timer | None = None
        self._lock = threading.Lock()

    @property
    def line(self) -> WorkerConnection:
        return self._line

    def progress(self, run: Run, percent: float, message: str | None) -> None:  # noqa: ARG002 - one run at a time
        """Only the latest word goes over the line, a moment later: a tight loop must not flood it."""
        with self._lock:
            self._progress = (percent, message)
            if self._teller is None:
                self._teller = threading.Timer(TELL_EVERY, self.tell_progress)
                self._teller.daemon = True
                self._teller.start()

    def tell_progress(self) -> None:
        with self._lock:
            latest, self._progress = self._progress, None
            teller, self._teller = self._teller, None
            if teller is not None:
                teller.cancel()
            if latest is not None:
                percent, message = latest
                self._line.send(progress=[percent, None if message is None else clean_text(message, LONGEST_MESSAGE)])

    def alive(self, run: Run) -> None:  # noqa: ARG002
        self._line.send(alive=True)

    def say(self, run: Run, level: str, message: str, fields: dict[str, Any]) -> None:  # noqa: ARG002
        self._line.send(say=[level, clean_text(message, LONGEST_LINE), {name: plain(value) for name, value in fields.items()}])

    async def flush(self, run: Run) -> None:
        await asyncio.to_thread(self.flush_sync, run)

    def flush_sync(self, run: Run) -> None:  # noqa: ARG002
        self.tell_progress()
        self._line.flush()

    def settled(self, settlement: Settlement, *, watched: bool) -> None:
        owes_output = settlement.run.owes_output
        self._line.send(settled={"settlement": _described(settlement), "watched": watched, "owes_output": owes_output})

    def doubt(self, settlement: Settlement) -> None:
        self._line.send(in_doubt=_described(settlement))


def _described(settlement: Settlement) -> dict[str, Any]:
    return {name: getattr(settlement, name) for name in ("finishing", "text", "state", "what", "error", "delay")}


class ProcessEnvironment:
    """What is imported before a job, once for all jobs of this process."""

    def __init__(self, home: str | None, *, django: bool) -> None:
        self._home = home
        self._django = django
        self._mains: dict[str, dict[str, Any]] = {}

    def kinds(self, job: dict[str, Any], database: DatabaseTarget) -> Registry:
        """Imports the app's module, then the job's. Gives the app's registry, and the app the worker's settings."""
        self._prepare()
        main, module, name = job["main"], job["module"], job["kind"]
        names = self._run_main(main) if main else vars(importlib.import_module(module))
        for value in names.values():
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
                self._mains[path] = runpy.run_path(path, run_name=CELL_MAIN)
        return self._mains[path]


def _serve(services: ProcessServices, surroundings: ProcessEnvironment, job: dict[str, Any]) -> None:
    line = services.line
    try:
        kinds = surroundings.kinds(job, services.resources.database)
        run = Run(kinds[job["kind"]], tuple(job["row"]), job["claim_id"], job["worker_id"])
    except BaseException as error:  # noqa: BLE001 - user code may raise anything while it is imported
        line.send(**_failure(None, error))
        return
    line.run = run
    try:
        answer = _answer(services, run, kinds)
    finally:
        line.run = None
    services.tell_progress()
    line.send(**answer)
    if run.signal.aborted:
        os._exit(0)  # what the handler left behind after an abort is not worth trusting


def _answer(services: ProcessServices, run: Run, kinds: Registry) -> dict[str, Any]:
    current_run.set(run)
    ctx = Context(run, services)
    try:
        result = (
            asyncio.run(_call_async(ctx, services, kinds)) if run.kind.signature.is_async else _call_plain(ctx, services, kinds)
        )
        if isinstance(result, Outcome):
            return _outcome(result, raised=False)
        return {"output": run.kind.output.encode(result).decode()}
    except Outcome as outcome:
        try:
            return _outcome(outcome, raised=True)
        except Exception as error:  # noqa: BLE001 - a subclass that did not call its parent's __init__
            return _failure(run, error)
    except Aborted as aborted:
        return {"aborted": aborted.reason}
    except BaseException as error:  # noqa: BLE001 - SystemExit in a handler must end the job, not the process
        return _failure(run, error)


def _call_plain(ctx: Context, services: ProcessServices, kinds: Registry) -> Any:
    run = ctx._run  # noqa: SLF001
    result = call_plain(ctx, kinds.around_thread)
    if run.transaction is not None:
        settle_open_sync(run, services, lambda: settlements.of_result(run, result))
    return result


async def _call_async(ctx: Context, services: ProcessServices, kinds: Registry) -> Any:
    run = ctx._run  # noqa: SLF001
    try:
        result = await on_loop(ctx, kinds.around_coroutine)
        if run.transaction is not None:
            await settle_open(run, services, lambda: settlements.of_result(run, result))
    finally:
        await services.resources.close()  # its pools belong to this handler's loop
        services.resources = Resources(services.resources.database, _THREADS)
    return result


def _outcome(outcome: Outcome, *, raised: bool) -> dict[str, Any]:
    name: str
    value: object
    match outcome:
        case Snooze():
            name, value = "snooze", _when(outcome)
        case Fail():
            name, value = "fail", clean_text(outcome.reason)
        case Cancel():
            name, value = "cancel", clean_text(outcome.reason)
        case _:
            return _failure(None, TypeError(f"{type(outcome).__name__} is not an outcome that Tenure knows"))
    return {"outcome": name, "value": value, "raised": raised}


def _when(snooze: Snooze) -> float | str:
    if snooze.delay is not None:
        return snooze.delay.total_seconds()
    assert snooze.until is not None
    return snooze.until.isoformat()


def _failure(run: Run | None, error: BaseException) -> dict[str, Any]:
    wanted = run is None or settlements.worth_another_attempt(run, error)
    return {"error": describe_exception(error), "wanted": wanted, "raised": packed(error)}


if __name__ == "__main__":
    main()
