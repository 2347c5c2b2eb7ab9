"""Rows written together with a job: I17 a handler's own transaction, I18 the transaction of a caller."""

from __future__ import annotations

from tenure.chaos.invariants.kinds import ATOMIC, ORDERED
from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.ledger import EffectRow
from tenure.chaos.verdict import Invariant
from tenure.model.states import State


class EffectsOnce(Rule):
    invariant = Invariant(
        "I17",
        "exactly once for your own rows",
        "a handler's transaction leaves exactly one effect if it completed its job, and none otherwise",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._fences: dict[str, list[int | None]] = {}

    def on_effect(self, effect: EffectRow) -> None:
        if effect.relation != "effects":
            return
        job = None if effect.job is None else self.case.jobs.get(effect.job)
        if job is None or job.kind != ATOMIC:
            self.report(f"left an effect for job {effect.job}, which is unknown or of a kind that writes none", n=effect.n)
            return
        if job.n != effect.n:
            self.report(f"left an effect for request {effect.n}, but was made by request {job.n}", job=job.job)
        self._fences.setdefault(job.job, []).append(effect.fence)

    def at_end(self) -> None:
        for job in self.case.jobs.values():
            if job.kind != ATOMIC:
                continue
            expected = [job.fence] if job.outcome == State.COMPLETED else []
            found = self._fences.get(job.job, [])
            if found != expected:
                fences = ", ".join(map(str, found)) or "none"
                what = f"is {job.outcome or job.state} under fence {job.fence}, but has effects of these fences: {fences}"
                self.report(what, job=job.job)


class JobsCommitWithCaller(Rule):
    invariant = Invariant("I18", "jobs commit with their caller", "each order row has its job, and each such job its order row")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._orders: dict[int, list[str | None]] = {}

    def on_effect(self, effect: EffectRow) -> None:
        if effect.relation == "orders":
            self._orders.setdefault(effect.n, []).append(effect.job)

    def at_end(self) -> None:
        jobs: dict[int, list[str]] = {}
        for job in self.case.jobs.values():
            if job.kind == ORDERED and not job.made_by_retry and job.n is not None:
                jobs.setdefault(job.n, []).append(job.job)
        for n in jobs.keys() | self._orders.keys():
            self._check(n, self._orders.get(n, []), jobs.get(n, []))

    def _check(self, n: int, orders: list[str | None], jobs: list[str]) -> None:
        if (len(orders), len(jobs)) != (1, 1):
            self.report(f"has {len(orders)} order rows and {len(jobs)} jobs", n=n)
        elif orders[0] not in (None, jobs[0]):
            self.report(f"has an order row for job {orders[0]}, but its job is {jobs[0]}", n=n)
