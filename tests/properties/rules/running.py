"""Workers claim, speak and settle, in time and too late."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

from hypothesis import strategies as st

from tenure.model.states import FINISHED, State
from tenure.store import claims, jobs, late_outputs, queues
from tenure.store.claim_replies import JobPosition
from tenure.store.claims import HeldJob
from tenure.store.jobs import FinishedRuns
from tenure.store.query import Query, array_literal
from tenure.worker.claim.cursors import Plan
from tests.properties.clock import BEGIN
from tests.properties.model import Job, Outcome, Run
from tests.properties.rules.base import PICK, QUEUES, SEAT, Seat, StoreMachine, move, some
from tests.store.database import reply_from_row

LIMIT = st.integers(1, 4)
ENDINGS: dict[str, dict[str, Any]] = {
    "completed": {"state": "completed", "output": '{"done": true}'},
    "failed": {"state": "failed", "error": "failed by its handler"},
    "canceled": {"state": "canceled", "error": "canceled by its handler"},
    "error": {"state": "retry", "what": "failed", "delay": 2.0, "error": "once more"},
    "fatal": {"state": "dead_letter", "what": "failed", "error": "never again"},
    "snoozed": {"state": "scheduled", "what": "snoozed", "delay": 3.0, "refund": 1},
    "requeued": {"state": "pending", "what": "requeued", "refund": 1},
    "crashed": {"state": "pending", "what": "crashed", "refund": 1, "crash": 1, "error": "signal SIGKILL"},
}
SET_ASIDE = {"state": "dead_letter", "delay": None}
ENDS = (*ENDINGS, "completed", "error")
END = st.sampled_from(ENDS)
SOME_ENDS = st.sampled_from([ends for size in (1, 2, 3) for ends in product(ENDS, repeat=size)])


class RunningRules(StoreMachine):
    @move(8, number=SEAT, limit=LIMIT)
    def claim(self, number: int, limit: int) -> None:
        self.claim_for(self.seat(number), limit)

    @move(8, number=SEAT, ends=SOME_ENDS)
    def work(self, number: int, ends: tuple[str, ...]) -> None:
        """Claims as many as there are ends, and settles them at once."""
        runs = self.claim_for(self.seat(number), len(ends))
        self._settle([self._outcome(run, end) for run, end in zip(runs, ends, strict=False)])

    @move(2, number=SEAT, limit=LIMIT)
    def claim_and_lose_the_answer(self, number: int, limit: int) -> None:
        self.claim_for(self.seat(number), limit, answered=False)

    @move(1, number=SEAT)
    def disown_lost_claims(self, number: int) -> None:
        """Requeues the jobs of claims whose answer was lost."""
        seat = self.seat(number)
        if not seat.owed:
            self.claim_for(seat, 2, answered=False)
        held = [HeldJob(*row) for row in self.run(claims.list_held(seat.id))]
        unknown = [held for held in held if held.claim_id in seat.owed]
        disowned = self.run(claims.disown(unknown, seat.profile.queues))
        self.agree(len(disowned), self.model.disown(seat.id, seat.owed, set(seat.profile.queues)), "jobs disowned")
        seat.owed.clear()

    @move(3, number=SEAT, keep=st.integers(0, 2))
    def forget_claims(self, number: int, keep: int) -> None:
        """A worker removes the rows of its claims that are over, except for some that it still works on."""
        seat = self.seat(number)
        mine = [claim.id for claim in self.model.books.claims.values() if claim.worker_id == seat.id]
        current = mine[len(mine) - min(keep, len(mine)) :]
        self.run(claims.forget(seat.id, current))
        self.model.forget_claims(seat.id, current)

    @move(10, pick=PICK, ends=SOME_ENDS)
    def settle(self, pick: int, ends: tuple[str, ...]) -> None:
        runs = self._held_runs(pick, len(ends))
        self._settle([self._outcome(run, end) for run, end in zip(runs, ends, strict=False)])

    @move(4, pick=PICK, end=END)
    def settle_too_late(self, pick: int, end: str) -> None:
        if run := self.some_run(pick, stale=True):
            self._settle([self._outcome(run, end)])

    @move(4, pick=PICK)
    def settle_again(self, pick: int) -> None:
        """The same once more, after a lost answer."""
        if not self.settlements:
            self.settle(pick, ("completed",))
        for outcomes in some(self.settlements[-8:], pick):
            self._settle(outcomes)
            settled = sorted((o.run.job_id,) for o in outcomes if self.model.was_settled(o.run))
            self.agree(sorted(self.store.run(jobs.find_settled(_array(outcomes)))), settled, "settled by this very claim")

    @move(4, pick=PICK, stale=st.booleans(), percent=st.sampled_from((None, 10.0, 50.0)), lease=st.sampled_from((None, 4.0, 8.0)))
    def say_something(self, pick: int, stale: bool, percent: float | None, lease: float | None) -> None:
        """Progress, and a heartbeat for the job's own lease."""
        if run := self.some_run(pick, stale=stale):
            said = {"id": run.job_id, "claim_id": run.claim_id, "percent": percent, "lease": lease}
            heard = self.run(jobs.write_updates(json.dumps([said]), 100))
            self.agree(heard, self.model.say(run, percent, lease), "runs whose note was accepted")

    @move(1, pick=PICK)
    def add_the_output(self, pick: int) -> None:
        for run in some(self.runs, pick):
            self.run(late_outputs.set_output(run.job_id, run.claim_id, '"late"'))
            self.model.set_output(run, '"late"')

    @move(1)
    def ask_what_became_of_runs(self) -> None:
        runs = self.runs[-20:]
        asked = json.dumps([{"id": run.job_id, "claim_id": run.claim_id} for run in runs])
        expected = [(run.job_id, run.claim_id, why) for run in runs if (why := self.model.whereabouts(run))]
        self.agree(sorted(self.store.run(claims.check(asked))), sorted(expected), "runs that are not ours any more")

    @move(1, pick=PICK)
    def watch(self, pick: int) -> None:
        for job_id in self.some_ids(pick):
            self.run(jobs.watch(job_id, 60.0))
            self.model.watched.add(job_id)

    @move(1, number=SEAT)
    def survey(self, number: int) -> None:
        seat = self.seat(number)
        kinds = seat.profile.kinds
        query = queues.survey(json.dumps(list(seat.profile.queues)), array_literal(list(kinds)))
        waiting = [
            job for job in self.model.books.live.values() if job.state == State.PENDING and job.queue in seat.profile.queues
        ]
        rows = self.store.run(query)
        for queue, priority, _ in rows:
            seat.cursors.add_priority(queue, priority)
        told = sorted((queue, priority, sorted(json.loads(unknown or "[]"))) for queue, priority, unknown in rows)
        lanes = {(job.queue, job.priority): set[str]() for job in waiting}
        for job in waiting:
            lanes[job.queue, job.priority] |= {job.kind} - set(kinds)
        self.agree(told, sorted((*lane, sorted(unknown)) for lane, unknown in lanes.items()), "priorities that wait")

    # Runs: where a rule needs one and there is none, a worker claims first

    def _held_runs(self, pick: int, most: int = 1) -> list[Run]:
        """Runs that are their job's own, of any worker."""
        held = [Run(job.id, job.claim_id or "", job.worker_id or "") for job in self.model.books.live.values() if job.held]
        return some(held, pick, most) or self.claim_for(self.seats[pick % 3], most)

    def some_run(self, pick: int, *, stale: bool) -> Run | None:
        """A run, its job's own or one that is over."""
        runs = [run for run in self.runs[-40:] if not self.model.holds(run)] if stale else []
        return next(iter(some(runs, pick) or self._held_runs(pick)), None)

    # Claiming

    def claim_for(self, seat: Seat, limit: int, *, answered: bool = True) -> list[Run]:
        model, profile, claim_id = self.model, seat.profile, self.new_id()
        holds, could = model.may_claim(seat.id), model.claimable(profile)
        told = {name: queue.returns for name, queue in model.books.queues.items()}
        told_all = all(seat.cursors._returns.get(queue, 0) == told.get(queue, 0) for queue in profile.queues)
        now = model.now - BEGIN
        plan = seat.cursors.plan(now)
        rows = self.run(_claim_query(seat, claim_id, plan, limit))
        taken = model.claim(seat.id, profile, claim_id, plan.lanes, limit)
        found = sorted((row[1:11] for row in rows if row[1] is not None), key=lambda row: (-row[3], row[4]))
        self.agree(found, sorted(map(_as_claimed, taken), key=lambda row: (-row[3], row[4])), "claimed")
        reply = reply_from_row(rows[0])
        returned = (reply.holds, reply.returns, sorted(reply.paused), reply.picked, reply.position)
        self.agree(returned, (holds, told, sorted(model.paused()), len(taken), model.books.position), "what a claim returns")
        if holds and told_all:
            self._check_order(could, taken, limit)
        runs = [Run(job.id, claim_id, seat.id) for job in taken]
        self.runs += runs
        if not answered:
            seat.owed.add(claim_id)
            return runs
        # Transactions in other databases of the server must not affect the cursors.
        reply = replace(reply, xmin=reply.xid)
        seat.cursors.learn(plan, [JobPosition(row[2], row[3], row[4]) for row in found], limit, reply, now=now, took=0.0)
        return runs

    def _check_order(self, could: list[Job], taken: list[Job], limit: int) -> None:
        """Higher priority first, then FIFO, in each queue; nothing is left while there is room. Cursors hide nothing."""
        for queue in QUEUES:
            first = [job.id for job in could if job.queue == queue]
            got = sorted((job for job in taken if job.queue == queue), key=lambda job: (-job.priority, job.position))
            self.agree([job.id for job in got], first[: len(got)], f"the first of {queue}")
        self.agree(len(taken), min(limit, len(could)), "how many a claim found")

    # Settling

    def _outcome(self, run: Run, end: str) -> Outcome:
        """As a worker decides, who knows the job as it was claimed."""
        job = self.model.books.live.get(run.job_id)
        used_up = job is not None and end == "error" and job.attempt >= job.max_attempts
        return Outcome(run=run, **ENDINGS[end] | (SET_ASIDE if used_up else {}))

    def _settle(self, outcomes: Iterable[Outcome]) -> None:
        """As the one writer does: those that finish in one statement, those that move in another."""
        outcomes = tuple(outcomes)
        finishing = [o for o in outcomes if o.state in FINISHED]
        moving = [o for o in outcomes if o.state not in FINISHED]
        if finishing:
            self.agree(sorted(self.run(jobs.finish(finished(finishing)))), self.model.finish(finishing), "finished")
        if moving:
            self.agree(sorted(row[:2] for row in self.run(jobs.move(_array(moving)))), self.model.settle(moving), "moved")
        if outcomes:
            self.settlements.append(outcomes)


def finished(outcomes: Iterable[Outcome]) -> FinishedRuns:
    outcomes = list(outcomes)
    return FinishedRuns(
        array_literal([o.run.job_id for o in outcomes]),
        array_literal(sorted({o.run.claim_id for o in outcomes})),
        json.dumps({o.run.job_id: o.to_finish() for o in outcomes}),
    )


def _array(outcomes: Iterable[Outcome]) -> str:
    return json.dumps([outcome.to_json() for outcome in outcomes])


def _claim_query(seat: Seat, claim_id: str, plan: Plan, limit: int) -> Query:
    return jobs.claim(
        worker_id=seat.id,
        claim_id=claim_id,
        lanes=plan.to_json(),
        limit=limit,
        kinds=array_literal(list(seat.profile.kinds)),
        capabilities=array_literal(list(seat.profile.capabilities)),
        leases=json.dumps(dict(seat.profile.leases)),
        which=seat.profile.which,
    )


def _as_claimed(job: Job) -> tuple[object, ...]:
    return (
        job.id,
        job.kind,
        job.queue,
        job.priority,
        job.position,
        job.attempt,
        job.max_attempts,
        job.crashes,
        job.fence,
        job.input,
    )
