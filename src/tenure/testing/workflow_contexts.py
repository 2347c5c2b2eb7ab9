"""Contexts for workflows that a test calls directly. Steps run at once, waits end at once, and nothing is stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from uuid import UUID, uuid5

from tenure.client.calls import Call
from tenure.flow.branches import begin_branches
from tenure.flow.children import Child, Startable
from tenure.flow.context import WorkflowContext
from tenure.flow.step_functions import StepCall, StepFunction
from tenure.flow.step_runner import StepOptions
from tenure.flow.waiting import AwaitedEvent, End, Received
from tenure.model.errors import ConfigError, StepFailed, WaitTimeout
from tenure.model.ids import uuid7
from tenure.model.outcomes import Outcome
from tenure.model.payloads import describe_exception, plain_json
from tenure.model.suspensions import OpenStep
from tenure.testing.contexts import PlainTransaction, RecordingServices, claimed_job, database_of, kind_of, system_with
from tenure.testing.runtimes import AnyJob
from tenure.worker.run.context import Context
from tenure.worker.run.run import Run

T = TypeVar("T")


class RecordedStep(NamedTuple):
    """What a workflow has done, in order."""

    name: str
    what: str
    """step, transaction, sleep, wait, event, call, start, undo, patch or value."""
    output: Any = None


class DirectJournal:
    """Has nothing of earlier runs, and keeps what this one records."""

    replaying = False

    def __init__(self) -> None:
        self.steps: list[RecordedStep] = []

    def find(self, key: str) -> None:
        """Nothing was recorded before."""

    def name(self, key: str) -> None:
        """Nothing was recorded before, so nothing can be missed."""

    def unread(self, path: str = "") -> list[str]:
        del path
        return []

    def next_number(self) -> int:
        return len(self.steps) + 1

    def add(self, step: OpenStep) -> None:
        if step.what != "status":
            self.steps.append(RecordedStep(step.name, step.what, step.output))

    async def flush(self) -> None:
        """Nothing is written."""

    async def record_rollback(self, key: str) -> None:
        self.steps.append(RecordedStep(key, "undo"))


class DirectSteps:
    """Calls the function of a step once, without retries."""

    def __init__(self, journal: DirectJournal, services: RecordingServices) -> None:
        self.activity = self
        self._journal = journal
        self._services = services

    @contextmanager
    def gathering(self, *, children: bool) -> Iterator[None]:  # noqa: ARG002 - nothing waits here
        yield

    async def run(self, key: str, function: StepFunction, call: StepCall, options: StepOptions, what: str = "step") -> Any:
        async def perform() -> Any:
            async with asyncio.timeout(options.timeout):
                return await function.run(call, None)  # type: ignore[arg-type]  # the threads of the event loop

        return await self._recorded(key, what, function, perform)

    async def run_in_transaction(
        self, key: str, function: StepFunction, call: StepCall, options: StepOptions, session: object | None
    ) -> Any:
        transaction = PlainTransaction(session, self._services.resources)

        def in_thread() -> Any:
            with transaction as connection:
                return function.fn(connection, *call.args)

        async def perform() -> Any:
            async with asyncio.timeout(options.timeout):
                if not function.is_async:
                    return await asyncio.to_thread(in_thread)
                async with transaction as connection:
                    return await function.fn(connection, *call.args)

        return await self._recorded(key, "transaction", function, perform)

    async def _recorded(
        self, key: str, what: str, function: StepFunction, perform: Callable[[], Coroutine[Any, Any, Any]]
    ) -> Any:
        try:
            value = await perform()
        except Outcome:
            raise
        except Exception as error:
            raise StepFailed(key, describe_exception(error)) from error
        text = function.encode(value)
        self._journal.steps.append(RecordedStep(key, what, json.loads(text)))
        return function.same(value, text)

    async def recorded(self, key: str, what: str) -> None:
        """Nothing was recorded before."""

    async def begin(self, key: str) -> None:
        """Anything may begin."""

    def add_failures(self) -> None:
        """A failure is not recorded."""

    @contextmanager
    def working(self) -> Iterator[None]:
        yield


class PreparedWaits:
    """Ends every sleep at once, and has the events that the test has given."""

    def __init__(self, journal: DirectJournal, events: Mapping[str, Sequence[Any]]) -> None:
        self._journal = journal
        self._events = events

    async def sleep(self, key: str, end: End) -> None:
        self._journal.steps.append(RecordedStep(key, "sleep", end.seconds if end.until is None else end.until))

    async def wait_for(self, key: str, event: AwaitedEvent) -> Any:
        return self._received(key, "wait", event, 0)

    async def next_event(self, key: str, event: AwaitedEvent, received: Received) -> Any:
        payload = self._received(key, "event", event, received.position)
        received.position += 1
        return payload

    def _received(self, key: str, what: str, event: AwaitedEvent, index: int) -> Any:
        sent = self._events.get(event.name, ())
        if index < len(sent):
            self._journal.steps.append(RecordedStep(key, what, sent[index]))
            return event.decode(plain_json(sent[index], what=f"the payload of event {event.name!r}"))
        if event.timeout is not None:
            raise WaitTimeout(key)
        problem = f"the workflow waits for event {event.name!r}, number {index + 1}, and the test has sent {len(sent)}"
        raise ConfigError(f"{problem}: give workflow_context(events={{{event.name!r}: [payload, ...]}})")


class PreparedChildren:
    """Has the results of jobs that the test has given."""

    def __init__(self, run: Run, journal: DirectJournal, results: Mapping[AnyJob | str, Any]) -> None:
        self._run = run
        self._journal = journal
        self._results = {job if isinstance(job, str) else job.name: result for job, result in results.items()}
        self._started: dict[str, str] = {}

    async def call(self, key: str, job: Startable[..., Any], call: Call[Any]) -> Any:
        del job  # nothing is enqueued
        return self._result(key, call.kind)

    async def start(self, key: str, job: Startable[..., Any], call: Call[Any]) -> Child[Any]:
        del job
        child = uuid5(self._run.job_uuid, key)
        self._started[str(child)] = call.kind
        self._journal.steps.append(RecordedStep(key, "start"))
        return Child(child, key, self)  # type: ignore[arg-type]  # used in the same way

    async def join(self, key: str, child: str) -> Any:
        return self._result(key, self._started[child])

    def _result(self, key: str, kind: str) -> Any:
        if kind not in self._results:
            problem = f"the workflow waits for a job of kind {kind!r}, which does not run here"
            raise ConfigError(f"{problem}: give workflow_context(results={{{kind!r}: result}}), or use drain()")
        result = self._results[kind]
        if isinstance(result, Exception):
            raise result
        self._journal.steps.append(RecordedStep(key, "call", result))
        return result


class RecordingWorkflowContext(WorkflowContext):
    """The context of a workflow outside of a worker. It keeps what the workflow does."""

    __slots__ = ("_begun", "_recorded")

    def __init__(
        self,
        run: Run,
        services: RecordingServices,
        events: Mapping[str, Sequence[Any]],
        results: Mapping[AnyJob | str, Any],
    ) -> None:
        Context.__init__(self, run, services)  # that of the parent needs a worker
        self._recorded = DirectJournal()
        self._journal = self._recorded  # type: ignore[assignment]  # each of these is used in the same way
        self._steps = DirectSteps(self._recorded, services)  # type: ignore[assignment]
        self._waiter = PreparedWaits(self._recorded, events)  # type: ignore[assignment]
        self._children = PreparedChildren(run, self._recorded, results)  # type: ignore[assignment]
        self._calls = set()  # type: ignore[assignment]
        self._undos = []
        self._signals = {}
        self._writing = set()
        self._begun = False

    @property
    def steps(self) -> list[RecordedStep]:
        """What the workflow has done, in order."""
        return self._recorded.steps

    async def roll_back(self) -> None:
        """Calls what the workflow has registered with `on_rollback()`, the last one first, as a worker does when it fails."""
        while self._undos:
            undo = self._undos.pop()
            await self._steps.run(undo.key, undo.function, undo.call, undo.options, "undo")

    async def gather(self, *steps: Coroutine[Any, Any, T]) -> list[T]:
        self._begin()
        return await super().gather(*steps)

    def _key(self, name: str) -> str:
        self._begin()
        return super()._key(name)

    def _begin(self) -> None:
        """In the task that calls the workflow: names of steps are counted from here."""
        if not self._begun:
            self._begun = True
            begin_branches()


def workflow_context(
    job: AnyJob | None = None,
    *,
    events: Mapping[str, Sequence[Any]] | None = None,
    results: Mapping[AnyJob | str, Any] | None = None,
    job_id: UUID | str | None = None,
    attempt: int = 1,
    max_attempts: int = 3,
    queue: str = "default",
    auth: Any = None,
    meta: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> RecordingWorkflowContext:
    """A context to call a workflow with: `await sell(workflow_context(events={"paid": [{"cents": 999}]}), "o-17")`.

    Steps run once, without retries; a step that fails raises `StepFailed`. Sleeps end at once. `events`: the payloads of
    events and signals, by name, in order; without one, a wait that has a timeout raises `WaitTimeout`. `results`: of jobs that
    the workflow calls, by job or name; an exception is raised. `ctx.steps` has what the workflow did, and
    `await ctx.roll_back()` undoes it. To try crashes and replays, run the workflow with `drain()`.
    """
    claimed = claimed_job(
        job,
        job_id=job_id,
        attempt=attempt,
        max_attempts=max_attempts,
        queue=queue,
        auth=auth,
        meta=meta,
        system=system_with(headers),
    )
    run = Run(kind_of(job), claimed, str(uuid7()), str(uuid7()))
    return RecordingWorkflowContext(run, RecordingServices(database_of(job)), events or {}, results or {})
