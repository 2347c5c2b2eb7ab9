"""What the function of a workflow can do: steps, and values that are the same in every run."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, TypeVarTuple, overload
from uuid import UUID, uuid5
from weakref import WeakSet

from tenure.client.calls import Call, CallMaker
from tenure.client.emitting import event_key, payload_json
from tenure.client.options import Options
from tenure.flow.activity import Activity
from tenure.flow.branches import current_branch
from tenure.flow.children import Child, Children, Startable
from tenure.flow.journal import Journal
from tenure.flow.rollback import PERSISTENT, Undo
from tenure.flow.step_functions import StepCall, StepFunction, inside_step, runs_in_process, step_function
from tenure.flow.step_runner import StepOptions, StepRunner, step_options
from tenure.flow.waiting import AwaitedEvent, End, Received, Waiter
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError, TenureError
from tenure.model.kinds import RunIn
from tenure.model.names import check_name
from tenure.model.outcomes import Continue, NextLink
from tenure.model.retries import Retry
from tenure.model.suspensions import OpenStep
from tenure.worker.run.context import Context
from tenure.worker.run.run import Run

if TYPE_CHECKING:
    from tenure.worker.run.services import LoopServices

Key = str | int | UUID
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class WorkflowContext(Context):
    """The run of a workflow. Its function gets it by a parameter annotated `WorkflowContext`.

    The function may run several times: after a crash, and whenever it has waited. Steps that are recorded are not run again: they
    return what they returned before. So the function itself must do the same each time; everything else belongs into steps.
    """

    __slots__ = ("_calls", "_children", "_journal", "_signals", "_steps", "_undos", "_waiter", "_writing")

    def __init__(self, run: Run, services: LoopServices) -> None:
        super().__init__(run, services)
        self._journal = Journal(run, services.steps)
        self._steps = StepRunner(run, self._journal, Activity(), services)
        self._waiter = Waiter(self._steps)
        self._children = Children(run, self._steps, services)
        self._calls: WeakSet[Any] = WeakSet()
        self._undos: list[Undo] = []
        self._signals = {name: Received(position) for name, position in run.system.signals.items()}
        self._writing: set[asyncio.Task[None]] = set()

    @property
    def _continues(self) -> bool:
        """Earlier runs may have recorded something."""
        return self._run.fence > 1 or self._run.system.forked is not None

    # Steps

    @overload
    def step(
        self,
        name: str,
        fn: Callable[[*Ts], Awaitable[T]],
        /,
        *args: *Ts,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        run_in: RunIn | None = None,
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def step(
        self,
        name: str,
        fn: Callable[[*Ts], T],
        /,
        *args: *Ts,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        run_in: RunIn | None = None,
    ) -> Coroutine[Any, Any, T]: ...

    def step(  # type: ignore[misc]  # mypy does not match `*Ts` with `Any`
        self,
        name: str,
        fn: Callable[..., Any],
        /,
        *args: Any,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        run_in: RunIn | None = None,
    ) -> Coroutine[Any, Any, Any]:
        """Calls `fn(*args)` and records its result: `receipt = await ctx.step("charge", charge, order)`. A run that continues the
        workflow gets the recorded result, and does not call the function.

        A coroutine function runs on the event loop, a plain one in a thread; with `run_in="process"` either runs in another
        process. `retry`: how often and when it is tried again if it fails; long pauses take no slot. `timeout`: for each try.
        When it has failed for good, `StepFailed` is raised.
        """
        function = step_function(fn, name)
        options = step_options(retry, timeout, in_process=runs_in_process(run_in, function, name))
        return self._step(name, function, StepCall(args), options)

    def _step(self, name: str, function: StepFunction, call: StepCall, options: StepOptions) -> Coroutine[Any, Any, Any]:
        return self._steps.run(self._key(name), function, call, options)

    def _key(self, name: str) -> str:
        """At the call, not when it is awaited: `asyncio.gather(ctx.step(...), ctx.step(...))` always has the same order."""
        if inside_step.get():
            raise ConfigError(f"{name!r} is called inside of a step: a step has one result, so call the function itself there")
        if check_name(name, what="the name of a step").startswith("("):
            raise ConfigError(f"the name of a step is {name!r}: names that begin with '(' are Tenure's own")
        key = current_branch().key(name)
        self._journal.name(key)
        return key

    # A workflow is not completed by one transaction: here it is a step.
    @overload  # type: ignore[override]
    def transaction(
        self,
        name: str,
        fn: Callable[[Any, *Ts], Awaitable[T]],
        /,
        *args: *Ts,
        session: object | None = None,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def transaction(
        self,
        name: str,
        fn: Callable[[Any, *Ts], T],
        /,
        *args: *Ts,
        session: object | None = None,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
    ) -> Coroutine[Any, Any, T]: ...

    def transaction(  # type: ignore[misc]
        self,
        name: str,
        fn: Callable[..., Any],
        /,
        *args: Any,
        session: object | None = None,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
    ) -> Coroutine[Any, Any, Any]:
        """A step that is exactly once in your database: calls `fn(connection, *args)` in a transaction that also stores its
        result. `session`: as for `ctx.transaction()` of jobs; by default a connection of Tenure's own."""
        function, options = step_function(fn, name), step_options(retry, timeout)
        return self._steps.run_in_transaction(self._key(name), function, StepCall(args), options, session)

    # Children

    def call(self, job: Startable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Enqueues a job, waits for it without a slot, and returns its result: `await ctx.call(resize, image)`,
        `await ctx.call(resize.using(queue="gpu"), image)`. Raises `JobFailed` or `JobCanceled`, the same in every run. If the job
        continues a chain, the result is that of the chain."""
        call = job.call(*args, **kwargs)
        coroutine = self._children.call(self._key(call.kind), job, call)
        self._calls.add(coroutine)
        return coroutine

    def start(self, job: Startable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, Child[R]]:
        """Enqueues a job and does not wait: `child = await ctx.start(resize, image)`, later `await child.join()`."""
        call = job.call(*args, **kwargs)
        return self._children.start(self._key(f"start {call.kind}"), job, call)

    async def gather(self, *steps: Coroutine[Any, Any, T]) -> list[T]:
        """Runs steps, children and coroutines with several steps at the same time. Returns their results in this order, or raises
        the first error. If all are `ctx.call(...)`, the workflow runs again when all of them have ended, not for each."""
        branch = current_branch()
        with self._steps.activity.gathering(children=all(step in self._calls for step in steps)):
            return await asyncio.gather(*(branch.next().run(step) for step in steps))

    def continue_as_new(self, *args: Any, **kwargs: Any) -> Continue[Any]:
        """Ends this run and begins the workflow again with other arguments and nothing recorded, as the next link of its chain:
        `return ctx.continue_as_new(cursor)`. For workflows that never end, or record very many steps. It keeps the options of its
        call, and receives the signals that this run has not received."""
        job = self._run.job
        same = Options(
            queue=job.queue,
            priority=job.priority,
            max_attempts=job.max_attempts,
            timeout=job.timeout,
            auth=job.auth,
            meta=job.meta,
        )
        call = CallMaker(self._run.kind, same).of_arguments(self._run.kind, args, kwargs)
        return Continue(_Again(call.with_headers(self._run.stored_headers)))

    def _with_signals(self, outcome: Continue[Any]) -> Continue[Any]:
        """The next link does not receive again what this one has received."""
        return outcome.with_signals({name: one.position for name, one in self._signals.items() if one.position})

    # Undoing

    def on_rollback(
        self, fn: Callable[[*Ts], Any], /, *args: *Ts, retry: Retry | int | None = None, timeout: Duration | None = None
    ) -> Coroutine[Any, Any, None]:
        """Registers what undoes a step: `await ctx.on_rollback(refund, order)`. When the workflow fails for good or is canceled,
        all that is registered is called, the last one first. Each is a step: recorded, and by default tried 20 times.

        Register it before the step that it undoes, and let it do nothing if that step was not done: so nothing is left behind if
        the process dies in between.
        """
        name = getattr(fn, "__name__", "function")
        function, options = step_function(fn, name), step_options(PERSISTENT if retry is None else retry, timeout)
        return self._register(Undo(self._key(f"undo {name}"), function, StepCall(args), options))

    async def _register(self, undo: Undo) -> None:
        if await self._steps.recorded(undo.key, "on_rollback") is None:
            with self._steps.activity.working():
                await self._steps.begin(undo.key)
                await self._journal.record_rollback(undo.key)
        self._undos.append(undo)

    # Versions

    def patched(self, name: str) -> bool:
        """Whether this run takes the new way of changed code: `if ctx.patched("check stock first"): ...`. False for runs that
        passed this place before the change."""
        branch, key = current_branch(), self._key(f"patch {name}")
        if self._journal.find(key) is not None:
            return True
        if self._journal.unread(branch.path):
            return False
        self._steps.add_failures()
        number = self._journal.next_number()
        self._journal.add(OpenStep(number=number, name=key, what="patch", state="done"))
        return True

    # Waiting

    def sleep(self, name: str, duration: Duration | None = None, *, until: datetime | None = None) -> Coroutine[Any, Any, None]:
        """Continues after a duration, or at a time. The workflow takes no slot meanwhile, and a restart changes nothing:
        `await ctx.sleep("cool off", "3d")`, `await ctx.sleep("until monday", until=monday)`."""
        return self._waiter.sleep(self._key(name), End.of(duration, until, what=f"ctx.sleep({name!r})"))

    @overload
    def wait_for(
        self, event: str, *, key: Key | None = None, timeout: Duration | None = None, type: type[T]
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def wait_for(
        self, event: str, *, key: Key | None = None, timeout: Duration | None = None, type: None = None
    ) -> Coroutine[Any, Any, Any]: ...

    def wait_for(
        self,
        event: str,
        *,
        key: Key | None = None,
        timeout: Duration | None = None,
        type: Any = None,  # noqa: A002
    ) -> Coroutine[Any, Any, Any]:
        """Waits for an event that `app.emit(event, payload, key=key)` sends, and returns its payload: typed if `type` is given.

        An event that was sent before counts, too; if there are several, the first one. After `timeout`, `WaitTimeout` is raised.
        """
        awaited = _awaited(event, event_key(key), timeout, type)
        return self._waiter.wait_for(self._key(event), awaited)

    def wait_for_signal(
        self,
        name: str,
        *,
        timeout: Duration | None = None,
        type: Any = None,  # noqa: A002
    ) -> Coroutine[Any, Any, Any]:
        """Waits for the next signal of this name that `handle.signal(name, payload)` sends to this workflow, and returns its
        payload. Each signal is received once, in order; if several tasks wait for the same name, each gets another one."""
        received, signal = self._signals.setdefault(name, Received()), _awaited(name, self._run.job_id, timeout, type)
        if self._run.system.link is not None:
            signal.link = self._run.job_id
        return self._waiter.next_event(self._key(name), signal, received)

    async def events(
        self,
        event: str,
        *,
        key: Key | None = None,
        type: Any = None,  # noqa: A002
    ) -> AsyncIterator[Any]:
        """All events of this name and key, in order, from the first one that is kept: `async for payload in ctx.events("paid")`.
        Waits for the next one, so leave the loop yourself."""
        awaited, received = _awaited(event, event_key(key), None, type), Received()
        while True:
            yield await self._waiter.next_event(self._key(event), awaited, received)

    # Values

    def set_status(self, status: Any) -> None:
        """What `handle.query()` returns from now on: a text, or any JSON."""
        if not self._journal.replaying:
            self._journal.add(
                OpenStep(number=0, name="(status)", what="status", output=json.loads(payload_json("status", status)))
            )
            task = asyncio.get_running_loop().create_task(self._write())
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def _write(self) -> None:
        with suppress(TenureError):  # the run has lost its job
            await self._journal.flush()

    async def _written(self) -> None:
        """Returns when nothing is on its way: what is written after the end of the run would be rejected."""
        if self._writing:
            await asyncio.wait(self._writing)

    def now(self) -> datetime:
        """The time, the same in every run."""
        key = self._key("now")
        row = self._journal.find(key)
        if row is not None and row.output is not None:
            return datetime.fromisoformat(json.loads(row.output))
        now = datetime.now(UTC)
        self._steps.add_failures()
        number = self._journal.next_number()
        self._journal.add(OpenStep(number=number, name=key, what="value", state="done", output=now.isoformat()))
        return now

    def random(self) -> float:
        """A random number from 0 to 1, the same in every run of this workflow, and another one for each call."""
        return random.Random(f"{self._run.job_id} {self._key('random')}").random()  # noqa: S311 - not for secrets

    def uuid(self) -> UUID:
        """A new UUID, the same in every run of this workflow, and another one for each call: for the idempotency keys of other
        services."""
        return uuid5(self._run.job_uuid, self._key("uuid"))


def _awaited(event: str, key: str, timeout: Duration | None, type_: Any) -> AwaitedEvent:
    check_name(event, what="the name of an event")
    return AwaitedEvent(event, key, None if timeout is None else to_seconds(timeout, what="timeout"), type_)


class _Again:
    """What `Continue` takes: a job that makes the next link. A run does not know the capability of its job, so continue_jobs
    copies it from the job's row."""

    def __init__(self, call: Call[Any]) -> None:
        self._call = call

    def link(self) -> NextLink[Any]:
        return replace(self._call.as_link(), keeps_capability=True)


_current: ContextVar[WorkflowContext | None] = ContextVar("current_workflow", default=None)


def workflow_context(run: Run, services: LoopServices) -> WorkflowContext:
    """Makes the context of a workflow, and lets steps that are called in this task find it."""
    context = WorkflowContext(run, services)
    _current.set(context)
    return context


def current_workflow() -> WorkflowContext | None:
    return _current.get()
