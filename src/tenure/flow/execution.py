"""Runs the function of a workflow until it returns or fails, or only waits. Undoes what it has done if it has failed for good."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Collection, Coroutine
from dataclasses import replace
from typing import Any

from tenure.flow.activity import PATIENT_TURNS, Restart, StopWorkflow
from tenure.flow.branches import begin_branches
from tenure.flow.context import WorkflowContext, current_workflow
from tenure.flow.rollback import MARK, RollbackEnding, is_final, undo_all
from tenure.flow.step_runner import WAY_OUT
from tenure.model.errors import LeaseLost, StepFailed
from tenure.model.events import WorkflowSuspended
from tenure.model.outcomes import Cancel, Continue, Decision, Fail, Outcome
from tenure.model.suspensions import OpenStep, Suspension, undo_key
from tenure.worker.run import settlement as settlements
from tenure.worker.run.stored_steps import StepsLost

log = logging.getLogger("tenure")

Body = Callable[[], Coroutine[Any, Any, Any]]


class Suspend(Outcome):
    """The workflow waits, and takes no slot. Returned to the worker, not by users."""

    def __init__(self, suspension: Suspension) -> None:
        self.suspension = suspension
        super().__init__(suspension.held or "suspended")

    def decide(self) -> Decision:
        held = self.suspension.held
        return Decision(state="waiting", what="held" if held else "suspended", error=held, refund=1, suspension=self.suspension)


def entry_of(fn: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The function of a workflow as workers call it. Outside of a worker it stays a plain function."""

    @functools.wraps(fn)
    async def enter(*args: Any, **kwargs: Any) -> Any:
        context = current_workflow()
        if context is None:
            return await fn(*args, **kwargs)
        return await Execution(context).run(functools.partial(fn, *args, **kwargs))

    return enter


class Execution:
    """One run of a workflow."""

    def __init__(self, context: WorkflowContext) -> None:
        self._context = context
        self._run = context._run  # noqa: SLF001 - its own package
        self._journal = context._journal  # noqa: SLF001
        self._steps = context._steps  # noqa: SLF001

    async def run(self, body: Body) -> Any:
        """The result of the workflow, or what it waits for."""
        try:
            result = await self._run_or_roll_back(body)
        except StepsLost:
            return self._restart()
        except Continue as outcome:
            result = outcome
        return self._context._with_signals(result) if isinstance(result, Continue) else result  # noqa: SLF001

    async def _run_or_roll_back(self, body: Body) -> Any:
        if self._context._continues:  # noqa: SLF001
            await self._journal.load()
        ending = self._earlier_ending()
        if ending is not None:
            await self._replay(body)
            return await self._roll_back(ending)
        try:
            result = await self._until_halted(body)
            if not isinstance(result, Fail | Cancel) or not self._context._undos:  # noqa: SLF001
                await self._store_waits(result)
                return result
            ending = await self._begin_rollback(result)
        except asyncio.CancelledError:
            if self._run.abort_reason != "timeout":
                raise
            return self._rolled_back_later()
        except LeaseLost:
            raise
        except Exception as error:
            if not self._context._undos or not is_final(self._run, error):  # noqa: SLF001
                await self._store_waits(error)
                await self._journal.forget_failures(_failed_steps(error))
                raise
            ending = await self._begin_rollback(error)
        return await self._roll_back(ending)

    async def _store_waits(self, result: object) -> None:
        """If the workflow is over. After an error it may run again, also as a replayed dead letter, and looks again."""
        if isinstance(result, Fail | Cancel) or not isinstance(result, Outcome | StopWorkflow | Exception):
            await self._journal.store_waits()

    # The function

    async def _until_halted(self, body: Body) -> Any:
        """Runs until it ends, or is to halt. Raises what it raises."""
        activity = self._steps.activity
        tasks: set[asyncio.Task[Any]] = set()

        async def run_body() -> Any:
            nonlocal tasks
            tasks = begin_branches()
            result = await body()
            await self._steps.returned()
            return result

        task = asyncio.get_running_loop().create_task(run_body())
        try:
            await asyncio.wait({task, activity.halted}, return_when=asyncio.FIRST_COMPLETED)
            if task.done() and not activity.halted.done():
                result = task.result()
                await self._context._written()  # noqa: SLF001
                return result
        finally:
            await _end([task, *tasks])
        return await self._halted(activity.halted.result())

    async def _halted(self, how: Suspension | StopWorkflow | Restart) -> Any:
        if isinstance(how, StopWorkflow):
            return how
        if isinstance(how, Restart):
            raise StepsLost(self._run)
        await self._context._written()  # noqa: SLF001
        self._report(how)
        if how.held is not None:
            return Suspend(how)  # not what the wrong code has added: the right code would not ask for it, and be held too
        self._steps.add_failures()
        unwritten = self._journal.take_unwritten()
        return Suspend(replace(how, steps=(*unwritten, *how.steps)))

    def _report(self, how: Suspension) -> None:
        if how.held is not None:
            fields = {"job_id": self._run.job_id, "kind": self._run.kind_name, "reason": how.held}
            log.error("workflow is held: its code differs from what it recorded", extra=fields)
        events = self._context._services.events  # type: ignore[attr-defined]  # noqa: SLF001
        if events.wants(WorkflowSuspended):
            steps = tuple(step.name for step in how.steps)
            events.emit(WorkflowSuspended(job_id=self._run.job_uuid, kind=self._run.kind_name, steps=steps, held=how.held))

    def _restart(self) -> Suspend:
        """The statement that suspends the workflow finds that steps are gone, and makes it due at once."""
        fields = {"job_id": self._run.job_id, "kind": self._run.kind_name, "fence": self._run.fence}
        log.warning(
            "workflow restarts: PostgreSQL does not have steps that the run has stored, as after a failover", extra=fields
        )
        return Suspend(Suspension())

    # Rolling back

    def _earlier_ending(self) -> RollbackEnding | None:
        """An earlier run began to roll back, or the job was canceled."""
        if (row := self._journal.find(MARK)) is not None:
            return RollbackEnding.of_row(row)
        canceling = self._run.system.canceling
        return None if canceling is None else RollbackEnding("canceled", canceling)

    async def _begin_rollback(self, error: Exception) -> RollbackEnding:
        """Recorded first: from now on the workflow cannot continue, even if what failed would succeed in another run."""
        ending = RollbackEnding.of_error(error)
        await self._journal.record(MARK, "rollback", ending.to_json())
        return ending

    async def _replay(self, body: Body) -> None:
        """Runs the function as far as it is recorded, to learn what it has registered to undo."""
        self._steps.stopping = True
        self._steps.activity.idle_turns = PATIENT_TURNS
        try:
            await self._until_halted(body)
        except Exception:
            log.debug("the function of a workflow failed while it was rolled back", exc_info=True)
        self._steps.stopping = False

    def _unreached(self) -> list[str]:
        """What is registered to be undone, and neither undone nor known to this run: its code has changed."""
        known = {undo.key for undo in self._context._undos}  # noqa: SLF001
        undone = self._journal.names("undo", "done")
        return sorted(key for key in self._journal.names("on_rollback", "done") - known if undo_key(key) not in undone)

    async def _roll_back(self, ending: RollbackEnding) -> Any:
        """The outcome once all is undone, or what this waits for. Nothing is undone if the code has changed so that it does not
        reach all that is registered: the order would be wrong, and the rest would never be undone."""
        if unreached := self._unreached():
            names = ", ".join(map(repr, unreached[:5]))
            reason = f"it is to be rolled back, but the code does not reach {names}, which the run has registered: {WAY_OUT}"
            return await self._halted(Suspension(held=reason))
        self._steps.begin_rollback()
        result = await self._until_halted(functools.partial(undo_all, self._steps, self._context._undos))  # noqa: SLF001
        return result if isinstance(result, Outcome) else ending.outcome

    def _rolled_back_later(self) -> Any:
        """The run has exceeded its time limit, so the next run rolls back, if there is something to undo."""
        settlement = settlements.of_timeout(self._run)
        if settlement.state != "dead_letter" or not self._context._undos:  # noqa: SLF001
            raise asyncio.CancelledError
        ending = {"state": "failed", "reason": str(settlement.error).strip()}
        mark = OpenStep(number=self._journal.next_number(), name=MARK, what="rollback", state="done", output=ending, seconds=0)
        return Suspend(Suspension(steps=(*self._journal.take_unwritten(), mark)))


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancels what still runs of the workflow. How it ends is not of interest: the workflow has ended, or is to halt."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)
    for task in tasks:
        if not task.cancelled():
            task.exception()


def _failed_steps(error: BaseException) -> list[str]:
    """The steps whose failure this is."""
    if isinstance(error, BaseExceptionGroup):
        return [step for inner in error.exceptions for step in _failed_steps(inner)]
    return [error.step] if isinstance(error, StepFailed) else []
