"""What a workflow has recorded: found by name when the workflow runs again, and written as it continues."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tenure.flow.branches import path_of
from tenure.model.payloads import Json, with_members
from tenure.model.suspensions import OpenStep
from tenure.store.steps import StepRow
from tenure.worker.run.run import Run

if TYPE_CHECKING:
    from tenure.worker.run.steps import StepWriter

QUIET_TURNS = 50
"""Turns of the event loop in which the tasks of a workflow reach what they have recorded."""

QUIET_SECONDS = 1.0
"""The same for workflows that await something else between two steps. Only one whose code has changed waits that long."""

NOT_ASKED_FOR = frozenset({"rollback", "undo", "status"})
"""What is recorded and the code of the workflow does not ask for."""

WAITS = frozenset({"wait", "event", "call"})

NO_DECISIONS = frozenset({"status", "sleep"})


class Journal:
    def __init__(self, run: Run, writer: StepWriter) -> None:
        self._run = run
        self._writer = writer
        self._rows: dict[str, StepRow] = {}
        self._unread: set[str] = set()
        self._named: set[str] = set()
        """What the code has made a coroutine for."""
        self._unwritten: list[OpenStep] = []
        self._unstored: set[str] = set()
        """The names of what was added and is not known to be stored. Without a status and the end of a sleep: nothing follows
        from the one, and the other is the same in every later run."""
        self._storing: dict[asyncio.Future[None], None] = {}
        """Statements that are on their way, in order. Each is set when it has ended."""
        self._failed: set[str] = set()
        """Steps that have failed, and after which their task has not begun anything else."""
        self._numbers: dict[str, int] = {}
        self._written: dict[str, int] = {}
        """The numbers of all that is recorded or about to be."""
        self._last = 0

    async def load(self) -> None:
        self._rows = {row.name: row for row in await self._writer.load(self._run)}
        self._unread = {row.name for row in self._rows.values() if row.what not in NOT_ASKED_FOR}
        self._written = {row.name: row.number for row in self._rows.values()}
        self._last = max(self._written.values(), default=0)
        self._failed = {row.name for row in self._rows.values() if row.state == "failed"}

    # Reading

    @property
    def replaying(self) -> bool:
        """Something is recorded that the code has not asked for yet."""
        return bool(self._unread)

    def unread(self, path: str = "") -> list[str]:
        """The names of what the code has not asked for yet, below a branch, in the order in which it was recorded."""
        return sorted((name for name in self._unread if name.startswith(path)), key=lambda name: self._rows[name].number)

    def find(self, key: str) -> StepRow | None:
        """What is recorded under this name. The code has asked for it."""
        self._unread.discard(key)
        return self._rows.get(key)

    def name(self, key: str) -> None:
        """The code has made a coroutine for this. It may never run: its task can be canceled before it begins."""
        if key in self._unread:
            self._named.add(key)

    def names(self, what: str, *states: str) -> set[str]:
        """What earlier runs have recorded of this sort, in these states."""
        return {row.name for row in self._rows.values() if row.what == what and row.state in states}

    def skip_unread(self) -> None:
        """The code of the workflow does not run any further."""
        self._unread.clear()

    async def forget_failures(self, keys: Iterable[str]) -> None:
        """These failures have ended the run: the next attempt tries the steps again. Not if the workflow went on after them: what
        it did then would not fit any more."""
        names = [key for key in keys if key in self._written and not self._is_followed(key)]
        if names:
            await self._writer.forget(self._run, names)

    def _is_followed(self, key: str) -> bool:
        """By its own task. What other tasks did meanwhile does not depend on it."""
        path, last = path_of(key), self._written[key]
        return key not in self._failed or any(number > last and path_of(name) == path for name, number in self._written.items())

    async def record_rollback(self, key: str) -> None:
        """Something is registered to be undone. From now on, a cancellation lets the workflow run once more."""
        await self.store_decisions(key)
        await self._writer.record_rollback(self._run, key, self.next_number())

    async def caught_up(self) -> bool:
        """Called before something new happens. All that is recorded has led to other things that are recorded, so the code must
        have asked for all of it by now. If it has not, it is not the code that recorded it."""
        turns, deadline, before = 0, 0.0, len(self._unread)
        while self._unread:
            if len(self._unread) < before:
                turns, deadline, before = 0, 0.0, len(self._unread)
            turns += 1
            if turns > QUIET_TURNS:
                if self._unread <= self._named:
                    self._unread.clear()
                    return True
                deadline = deadline or time.monotonic() + QUIET_SECONDS
                if time.monotonic() > deadline:
                    return False
            await asyncio.sleep(0 if turns <= QUIET_TURNS else 0.01)
        return True

    # Writing

    def next_number(self) -> int:
        self._last += 1
        return self._last

    def number_of(self, key: str) -> int:
        """Of a step that waited before it ended: the number that it had."""
        if key in self._numbers:
            return self._numbers[key]
        row = self._rows.get(key)
        return self.next_number() if row is None else row.number

    def remember(self, key: str, number: int) -> None:
        """The step was stored under this number, and is not over."""
        self._numbers[key] = number

    def add(self, step: OpenStep) -> None:
        """Is written together with what follows it, or by `store_decisions` before something is done because of it."""
        self._unwritten.append(step)
        self._written[step.name] = step.number
        if step.what not in NO_DECISIONS:
            self._unstored.add(step.name)
        if step.state == "failed":
            self._failed.add(step.name)

    def take_unwritten(self) -> list[OpenStep]:
        """What was added, for the statement that ends the run. No step of its code follows that would have to wait for it."""
        unwritten, self._unwritten = self._unwritten, []
        self._unstored.clear()
        return unwritten

    async def record(
        self, key: str, what: str, output: Json = "null", *, error: str | None = None, attempts: int = 1, ran: float = 0.0
    ) -> None:
        """Returns when the step is stored as done, and all that was added before."""
        number = self._written[key] = self.number_of(key)
        step = self._head(key, number, what, "done") | {"ran": round(ran, 6), "error": error, "attempts": attempts}
        await self._store(with_members(json.dumps(step, ensure_ascii=False), output=output), last=key)

    async def flush(self) -> None:
        """Stores what was added."""
        if self._unwritten:
            await self._store(last=self._unwritten[-1].name)

    async def store_waits(self) -> None:
        """Stores how the last waits have ended, so that people see it when the workflow is over. Costs a statement, so only if
        there are any."""
        if any(step.what in WAITS for step in self._unwritten):
            await self.flush()

    async def store_decisions(self, key: str) -> None:
        """Called before this step does something that a crash does not take back. Returns when all is stored that may have led to
        it: values, results of waits, failures that were handled. Otherwise the next run could decide differently, after the step
        has acted. What another task is about to store counts too."""
        path, decided = path_of(key), set(self._unstored)
        self._failed = {name for name in self._failed if path_of(name) != path}
        while not decided.isdisjoint(self._unstored):
            if self._unwritten:
                await self.flush()
            else:
                await asyncio.wait([next(reversed(self._storing))])

    async def _store(self, *steps: Json, last: str) -> None:
        """Stores what was added, and these steps. If PostgreSQL refuses the result of the step, or its task is canceled, what was
        added is written with what follows: the workflow may have used it. It may be stored already; then nothing changes."""
        added, self._unwritten = self._unwritten, []
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._storing[ended] = None
        try:
            await self._writer.record(self._run, [*map(self._text, added), *steps], last)
            self._unstored.difference_update(step.name for step in added)
        except BaseException:
            self._unwritten[:0] = added
            raise
        finally:
            del self._storing[ended]
            ended.set_result(None)

    def _text(self, step: OpenStep) -> Json:
        more = {"output": step.output, "error": step.error, "attempts": step.attempts, "ran": 0}
        return json.dumps(self._head(step.name, step.number, step.what, step.state) | more, ensure_ascii=False)

    def _head(self, key: str, number: int, what: str, state: str) -> dict[str, Any]:
        run = self._run
        return {"id": run.job_id, "claim_id": run.claim_id, "number": number, "name": key, "what": what, "state": state}
