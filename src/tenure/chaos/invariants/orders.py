from __future__ import annotations

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.ledger import Effect
from tenure.chaos.verdict import Invariant

ORDERED = "ordered"
"""The kind that is handed in with an order, in one transaction of the caller's."""


class Orders(Rule):
    invariant = Invariant("I18", "jobs commit with their callers", "each order has its job, and each such job its order")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._orders: dict[int, list[str | None]] = {}

    def effect(self, effect: Effect) -> None:
        if effect.relation == "orders":
            self._orders.setdefault(effect.n, []).append(effect.job)

    def end(self) -> None:
        jobs: dict[int, list[str]] = {}
        for life in self.case.lives.values():
            if life.kind == ORDERED and not life.retried and life.n is not None:
                jobs.setdefault(life.n, []).append(life.job)
        for n in jobs.keys() | self._orders.keys():
            self._judge(n, self._orders.get(n, []), jobs.get(n, []))

    def _judge(self, n: int, orders: list[str | None], jobs: list[str]) -> None:
        if (len(orders), len(jobs)) != (1, 1):
            self.breach(f"has {len(orders)} orders and {len(jobs)} jobs", n=n)
        elif orders[0] not in (None, jobs[0]):
            self.breach(f"has an order for job {orders[0]}, but its job is {jobs[0]}", n=n)
