"""Whether a workflow works or only waits. When all its tasks wait, it gives up its slot."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NoReturn

from tenure.model.suspensions import ChainWait, EventWait, OpenStep, Suspension
from tenure.worker.run.stored_steps import StepsLost

IDLE_TURNS = 10
"""Turns of the event loop after which a task that could continue would have done so."""

PATIENT_TURNS = 1000
"""The same when it would not be made good by the next run."""


_gather: ContextVar[int] = ContextVar("workflow_gather", default=0)
"""The gather that the current task is part of."""


@dataclass(frozen=True, slots=True)
class StopWorkflow:
    """The workflow is not to continue: it is canceled, or has failed in an earlier run."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Steps that the run has stored are gone: the workflow begins again with what is recorded."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenWait:
    """What one task waits for."""

    step: OpenStep
    event: EventWait | None
    chain: ChainWait | None
    gather: int
    """The gather of children that the task is part of; 0: none."""


class Activity:
    def __init__(self) -> None:
        self.halted: asyncio.Future[Suspension | StopWorkflow | Restart] = asyncio.get_running_loop().create_future()
        """Set when the code of the workflow is not to run any further for now."""
        self._working = 0
        self._changes = 0
        self._waits: dict[OpenWait, None] = {}
        """In order."""
        self._gathers = 0
        self.idle_turns = IDLE_TURNS

    def check(self) -> None:
        """The code is being ended: what it does now, in its `finally` blocks, is not part of the workflow."""
        if self.halted.done():
            raise asyncio.CancelledError("the workflow is suspended")

    @contextmanager
    def working(self) -> Iterator[None]:
        """For as long as a step runs."""
        self._working += 1
        try:
            yield
        except StepsLost:
            self._halt(Restart())  # also if the code of the workflow handles the error
            raise
        finally:
            self._working -= 1
            self._changed()

    @contextmanager
    def gathering(self, *, children: bool) -> Iterator[None]:
        """Tasks that are started here are gathered. If all are `children`, the workflow continues when the last one has ended."""
        self._gathers += 1
        token = _gather.set(self._gathers if children else 0)
        try:
            yield
        finally:
            _gather.reset(token)

    async def wait(self, step: OpenStep, event: EventWait | None = None, chain: ChainWait | None = None) -> NoReturn:
        """The workflow waits for this. Never returns: the workflow runs again when the wait is over."""
        self.check()
        wait = OpenWait(step, event, chain, _gather.get())
        self._waits[wait] = None
        self._changed()
        try:
            await self._for_ever()
        finally:
            # The workflow has canceled the task, and does not wait for this any more.
            del self._waits[wait]

    async def hold(self, reason: str) -> NoReturn:
        """A person must decide how the workflow continues."""
        self._halt(Suspension(held=reason))
        await self._for_ever()

    async def stop(self) -> NoReturn:
        self._halt(StopWorkflow())
        await self._for_ever()

    async def _for_ever(self) -> NoReturn:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("no one sets this future")

    def _halt(self, how: Suspension | StopWorkflow | Restart) -> None:
        if not self.halted.done():
            self.halted.set_result(how)

    def _changed(self) -> None:
        self._changes += 1
        if self._waits and not self._working:
            asyncio.get_running_loop().call_soon(self._suspend_if_idle, self._changes, self.idle_turns)

    def _suspend_if_idle(self, changes: int, turns: int) -> None:
        """Another task may have just received its result, and is about to continue."""
        if changes != self._changes or self._working or not self._waits:
            return
        if turns:
            asyncio.get_running_loop().call_soon(self._suspend_if_idle, changes, turns - 1)
        else:
            self._halt(self._suspension())

    def _suspension(self) -> Suspension:
        # No task can continue before this number of children has ended. Others than the children of one gather may continue each.
        children = Counter(wait.gather for wait in self._waits if wait.chain is not None)
        return Suspension(
            steps=tuple(wait.step for wait in self._waits),
            waits=tuple(wait.event for wait in self._waits if wait.event is not None),
            chains=tuple(wait.chain for wait in self._waits if wait.chain is not None),
            missing=1 if 0 in children else min(children.values(), default=1),
        )
