"""Writes and reads what steps of workflows have returned. One statement serves all runs of the process that wait for it: at once
when idle, together under load.

A step has ended when its result is stored: its workflow does not continue before.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tenure.model.errors import InvalidOutput, InvalidPayload, LeaseLost, StoreUnavailable
from tenure.model.payloads import Json, with_members
from tenure.periodic import backoff
from tenure.store import claims, steps, workflows
from tenure.store.claims import HeldJob
from tenure.store.faults import Refused
from tenure.store.groups import send_or_halve
from tenure.store.link import Link
from tenure.store.query import Query
from tenure.store.steps import StepRow
from tenure.store.workflows import ChildStep
from tenure.worker.run.run import Run
from tenure.worker.run.stored_steps import StepsLost, confirm_stored

LARGEST_GROUP = 500

STALE_PARENT = "P0T01"  # the SQLSTATE with which tenure.enqueue() refuses a parent that has lost its claim

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Request(Generic[T]):
    run: Run
    steps: Sequence[Json]
    """To be stored; empty for a request to read."""
    last: str
    """The name of one of them."""
    answer: asyncio.Future[T]

    def to_json(self) -> Json:
        """The steps, the last one with what the run has stored before."""
        if not self.run.stored_steps:
            return ",".join(self.steps)
        before = json.dumps(self.run.stored_steps[-1], ensure_ascii=False)
        return ",".join([*self.steps[:-1], with_members(self.steps[-1], before=before)])

    @property
    def held(self) -> HeldJob:
        return HeldJob(self.run.job_id, self.run.claim_id)


@dataclass(slots=True, eq=False)
class ChildRequest:
    run: Run
    child: str
    """The id of the job."""
    job: Json
    """The job, as an object."""
    step: ChildStep
    answer: asyncio.Future[str]
    again: bool = False
    """The outcome of an earlier statement is unknown."""


class StepWriter:
    def __init__(self, link: Link, *, lost: Callable[[list[Run]], None]) -> None:
        """`lost(runs)` is called when runs no longer hold their jobs."""
        self._link = link
        self._lost = lost
        self._to_record: list[Request[None]] = []
        self._to_load: list[Request[list[StepRow]]] = []
        self._to_start: list[ChildRequest] = []
        self._locked: set[Run] = set()
        """Runs whose rows another session had locked: their steps are sent again a little later."""
        self._turns: asyncio.Task[None] | None = None

    async def record(self, run: Run, steps: Sequence[Json], last: str) -> None:
        """Returns when the steps are stored; `last` is the name of one of them. Raises `LeaseLost` when the run no longer holds
        its job, `StepsLost` when steps that it had stored are gone."""
        request: Request[None] = Request(run, steps, last, asyncio.get_running_loop().create_future())
        self._to_record.append(request)
        self._begin()
        await request.answer

    async def load(self, run: Run) -> list[StepRow]:
        """All steps of the job that earlier runs have stored, in order."""
        request: Request[list[StepRow]] = Request(run, (), "", asyncio.get_running_loop().create_future())
        self._to_load.append(request)
        self._begin()
        return await request.answer

    async def read(self, query: Query[T]) -> list[T]:
        """A statement that may be repeated: sent again while PostgreSQL is away."""
        failures = 0
        while True:
            try:
                return await self._link.fetch(query)
            except StoreUnavailable:
                failures += 1
                await asyncio.sleep(backoff(failures))

    async def forget(self, run: Run, names: Iterable[str]) -> None:
        """Removes failures, so that these steps are tried again."""
        await self.read(steps.forget(run.job_id, run.claim_id, names))

    async def start_child(self, run: Run, child: str, job: Json, step: ChildStep) -> str:
        """Enqueues the job with the id `child` and stores it as a step. Returns its id, or that of an earlier job with its key.
        `job`: an object of the array that `tenure.enqueue()` takes. Raises `LeaseLost` when the run no longer holds its job,
        `StepsLost` when steps that it had stored are gone."""
        request = ChildRequest(run, child, job, step, asyncio.get_running_loop().create_future())
        self._to_start.append(request)
        self._begin()
        return await request.answer

    async def record_rollback(self, run: Run, name: str, number: int) -> None:
        """A workflow has registered something to undo. Raises `LeaseLost` when the run no longer holds its job, `StepsLost` when
        steps that it had stored are gone."""
        stored = run.stored_steps
        if not await self.read(steps.record_rollback(run.job_id, run.claim_id, name, number, stored)):
            self.check_stored(run, await self.load(run))
            self._lost([run])
            raise LeaseLost(run.job_uuid, "taken_by_another_worker")
        confirm_stored(run, stored, name)

    @staticmethod
    def check_stored(run: Run, recorded: Iterable[StepRow]) -> None:
        """Raises `StepsLost` if the run has stored a step that is not among those that are recorded."""
        if not set(run.stored_steps) <= {row.name for row in recorded}:
            raise StepsLost(run)

    def _begin(self) -> None:
        if self._turns is None:
            self._turns = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        failures = 0
        try:
            while self._to_load or self._to_start or self._ready():
                try:
                    await self._turn()
                    failures = 0
                except StoreUnavailable:
                    failures += 1
                    await asyncio.sleep(backoff(failures))
                except Exception as error:  # noqa: BLE001 - each workflow raises it
                    waiting: list[Request[Any] | ChildRequest] = [*self._to_record, *self._to_load, *self._to_start]
                    for request in waiting:
                        _fail(request, error)
                self._forget_answered()
        finally:
            self._turns = None

    async def _turn(self) -> None:
        if group := self._to_load[:LARGEST_GROUP]:
            await self._load(group)
        if recorded := self._ready():
            await send_or_halve(recorded, self._record, self._refused)
        if self._to_start:
            run = self._to_start[0].run
            children = [request for request in self._to_start if request.run is run][:LARGEST_GROUP]
            await send_or_halve(children, self._start, self._refused_child)

    def _ready(self) -> list[Request[None]]:
        return [request for request in self._to_record if request.run not in self._locked][:LARGEST_GROUP]

    def _send_later(self, runs: set[Run]) -> None:
        """Only theirs: one locked row must not delay the workflows of the whole process."""
        self._locked |= runs
        asyncio.get_running_loop().call_later(backoff(1), self._send_again, runs)

    def _send_again(self, runs: set[Run]) -> None:
        self._locked -= runs
        self._begin()

    def _forget_answered(self) -> None:
        """Also those whose workflow was aborted: nothing may be stored for it any more."""
        self._to_record = [request for request in self._to_record if not request.answer.done()]
        self._to_load = [request for request in self._to_load if not request.answer.done()]
        self._to_start = [request for request in self._to_start if not request.answer.done()]

    async def _load(self, group: list[Request[list[StepRow]]]) -> None:
        found: dict[str, list[StepRow]] = {request.run.job_id: [] for request in group}
        for row in await self._link.fetch(steps.load(found)):
            found[row.job_id].append(row)
        for request in group:
            _answer(request, found[request.run.job_id])

    async def _record(self, given: list[Request[None]]) -> None:
        if not (group := await self._without_lost(given)):
            return
        before = {request.run: request.run.stored_steps[-1:] for request in group}
        rows = await self._link.fetch(steps.record("[" + ",".join([request.to_json() for request in group]) + "]"))
        found = {HeldJob(row.job_id, row.claim_id): row.whole for row in rows}
        missing = [request for request in group if request.held not in found]
        lost = await self._lost_among(missing) if missing else {}
        for request in group:
            if found.get(request.held):
                confirm_stored(request.run, before[request.run], request.last)
                before[request.run] = (*before[request.run], request.last)  # the same transaction
                _answer(request, None)
            elif request.held in found:
                _fail(request, StepsLost(request.run))
            elif request.held in lost:
                _fail(request, LeaseLost(request.run.job_uuid, lost[request.held]))
        if lost:
            self._lost([request.run for request in missing if request.held in lost])
        if locked := {request.run for request in missing if request.held not in lost}:
            self._send_later(locked)

    async def _start(self, group: list[ChildRequest]) -> None:
        """All of one run."""
        run, stored, again = group[0].run, group[0].run.stored_steps, any(request.again for request in group)
        jobs = "[" + ",".join([request.job for request in group]) + "]"
        steps = {request.child: request.step for request in group}
        try:
            rows = await self._link.fetch(
                workflows.start_children(run.job_id, run.fence, jobs, steps, again=again, stored=stored)
            )
        except StoreUnavailable:
            for request in group:
                request.again = True
            raise
        except Refused as error:
            if error.sqlstate != STALE_PARENT:
                raise
            for request in group:
                _fail(request, LeaseLost(run.job_uuid, "taken_by_another_worker"))
            self._lost([run])
            return
        if not rows:
            for request in group:
                _fail(request, StepsLost(run))
            return
        confirm_stored(run, stored, group[-1].step.name)
        started = {row.requested_id: row.id for row in rows}
        for request in group:
            _answer(request, started[request.child])

    async def _refused_child(self, request: ChildRequest, error: Refused) -> None:
        _fail(request, InvalidPayload(f"PostgreSQL refuses the job: {error}"))

    async def _without_lost(self, group: list[Request[None]]) -> list[Request[None]]:
        """Tasks of a run may have stored steps at the same time, by several statements: it is not known which was the last, so
        all are looked up. Returns the requests of runs that have all of them."""
        several = {request.run: request.run.stored_steps for request in group if len(request.run.stored_steps) > 1}
        if not several:
            return group
        pairs = [(run.job_id, name) for run, names in several.items() for name in names]
        lost = set(await self._link.fetch(steps.find_lost(pairs)))
        for run, names in several.items():
            if run.job_id not in lost:
                confirm_stored(run, names, names[-1])
        for request in group:
            if request.run.job_id in lost and request.run in several:
                _fail(request, StepsLost(request.run))
        return [request for request in group if not request.answer.done()]

    async def _lost_among(self, missing: list[Request[None]]) -> dict[HeldJob, str]:
        """Why the runs have lost their jobs."""
        held = json.dumps([{"id": request.run.job_id, "claim_id": request.run.claim_id} for request in missing])
        return {HeldJob(row.id, row.claim_id): row.reason for row in await self._link.fetch(claims.check(held))}

    async def _refused(self, request: Request[None], error: Refused) -> None:
        _fail(request, InvalidOutput(f"PostgreSQL refuses the result of a step: {error}"))


def _answer(request: Request[T] | ChildRequest, value: Any) -> None:
    if not request.answer.done():
        request.answer.set_result(value)


def _fail(request: Request[Any] | ChildRequest, error: Exception) -> None:
    if not request.answer.done():
        request.answer.set_exception(error)
