"""Jobs that a workflow starts and waits for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Never, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

from tenure.client.calls import Call, job_json
from tenure.flow.step_runner import StepRunner
from tenure.model.outcomes import Cancel, Continue, Fail, Output, RetryAfter, Snooze
from tenure.model.states import State
from tenure.model.suspensions import ChainWait, OpenStep
from tenure.store import blockers
from tenure.store.blockers import BlockerRow
from tenure.store.steps import StepRow
from tenure.store.workflows import ChildStep
from tenure.worker.run.blocker_results import MOST_BLOCKERS, blocker_result
from tenure.worker.run.run import Run

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tenure.worker.run.services import LoopServices

FIRST_CHILD = -(2**31)
"""Children have numbers below 0, so that they are not among the chains that the job was enqueued behind."""

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
X = TypeVar("X", bound=Output | None)
Y = TypeVar("Y", bound=Output | None)


class Startable(Protocol[P, R_co]):
    """What a workflow can start: `job`, or `job.using(...)`."""

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R_co]: ...

    def _within_hooks(self, call: Call[Any], /) -> AbstractContextManager[Sequence[Call[Any]]]: ...


class Ended(NamedTuple):
    """How the chain of a child has ended, as it is recorded."""

    child: str
    job_id: str | None
    kind: str | None
    state: str | None
    output: Any
    error: str | None

    def row(self) -> BlockerRow:
        output = None if self.output is None else json.dumps(self.output)
        job_id = None if self.job_id is None else UUID(self.job_id)
        return BlockerRow(0, UUID(self.child), True, job_id, self.kind, self.state, output, self.error)


class Child(Generic[R_co]):
    """A job that `ctx.start()` has started."""

    def __init__(self, job_id: UUID, key: str, children: Children) -> None:
        self.id = job_id
        self._key = key
        self._children = children

    # As in `Handle.result`: type checkers remove the outcomes. The first overload is for `Child[Any]`.
    @overload
    def join(self: Child[Never]) -> Coroutine[Any, Any, Any]: ...
    @overload
    def join(self: Child[X | Snooze | RetryAfter | Fail | Cancel | Continue[Y]]) -> Coroutine[Any, Any, X | Y]: ...

    def join(self: Child[Any]) -> Coroutine[Any, Any, Any]:
        """Waits for the job and returns its result. Raises `JobFailed` or `JobCanceled`, the same in every run."""
        return self._children.join(f"join {self._key}", str(self.id))


class Children:
    def __init__(self, run: Run, steps: StepRunner, services: LoopServices) -> None:
        self._run = run
        self._steps = steps
        self._services = services
        self._endings: dict[str, BlockerRow] | None = None
        """By chain: those that earlier runs have waited for, and that have ended."""
        self._reading = asyncio.Lock()

    async def start(self, key: str, job: Startable[..., Any], call: Call[Any]) -> Child[Any]:
        row = await self._steps.recorded(key, "start")
        if row is None:
            with job._within_hooks(call) as calls:  # noqa: SLF001 - not for users
                child = await self._start(key, calls[0], "start", "done")
        else:
            child = _child_of(row)
        return Child(UUID(child), key, self)

    async def call(self, key: str, job: Startable[..., Any], call: Call[Any]) -> Any:
        row = await self._steps.recorded(key, "call")
        if row is None:
            with job._within_hooks(call) as calls:  # noqa: SLF001 - not for users
                child = await self._start(key, calls[0], "call", "open")
        else:
            child = _child_of(row)
        return await self._result(key, child, row)

    async def join(self, key: str, child: str) -> Any:
        row = await self._steps.recorded(key, "call")
        if row is None:
            with self._steps.activity.working():
                await self._steps.begin(key)
        return await self._result(key, child, row)

    async def _start(self, key: str, call: Call[Any], what: str, state: str) -> str:
        journal = self._steps.journal
        with self._steps.activity.working():
            await self._steps.begin(key)
            await journal.store_decisions(key)
            number = journal.next_number()
            step = ChildStep(key, number, what, state)
            child = await self._services.steps.start_child(self._run, str(call.id), job_json(call), step)
        journal.remember(key, number)
        for wakeup in call.fields.wakeups:
            self._services.announce(wakeup)
        return child

    async def _result(self, key: str, child: str, row: StepRow | None) -> Any:
        if row is not None and row.state == "done":
            return self._outcome(Ended(**json.loads(row.output or "{}")))
        if row is None:
            self._steps.wait_began(key, "call", child=child)
        number = self._steps.journal.number_of(key)
        with self._steps.activity.working():
            ending = (await self._ended()).get(child)
        if ending is None:
            step = OpenStep(number=number, name=key, what="call", output={"child": child})
            return await self._steps.activity.wait(step, chain=ChainWait(id=child, number=-number))
        ended = Ended(
            child, None if ending.job_id is None else str(ending.job_id), ending.kind, ending.state,
            None if ending.output is None else json.loads(ending.output), ending.error,
        )  # fmt: skip
        self._steps.journal.add(OpenStep(number=number, name=key, what="call", state="done", output=ended._asdict()))
        self._steps.wait_ended(key, "call", failed=ended.state != State.COMPLETED, error=ended.error)
        return self._outcome(ended)

    def _outcome(self, ended: Ended) -> Any:
        result = blocker_result(ended.row(), self._services.kinds)
        if isinstance(result, Exception):
            raise result
        return result

    async def _ended(self) -> dict[str, BlockerRow]:
        """Read once, also if thousands of tasks ask for it at the same time."""
        async with self._reading:
            if self._endings is None:
                continues = self._run.fence > 1
                query = blockers.find(self._run.job_id, after=FIRST_CHILD, most=MOST_BLOCKERS)
                rows = await self._steps.read(query) if continues else []
                self._endings = {str(row.chain_id): row for row in rows if row.ended and row.number < 0}
            return self._endings


def _child_of(row: StepRow) -> str:
    child: str = json.loads(row.output or "{}")["child"]
    return child
