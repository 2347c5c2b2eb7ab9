from __future__ import annotations

from tenure.chaos.invariants.asked import Offered as Offer
from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Move
from tenure.chaos.verdict import Invariant

RETRY_OF = "retry of "
"""How the key of a job begins that was made of a finished one."""


class Offered(Rule):
    invariant = Invariant(
        "I2",
        "no job out of nothing",
        "each job was offered, planned or made by a retry; one offer makes one job at most, and so does one key",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._first: dict[int, str] = {}
        """By offer, the job that came of it."""
        self._others: dict[int, list[str]] = {}
        """By offer, what retries made of it."""
        self._by_key: dict[tuple[str, str], str] = {}
        self._unanswered = case.asked.unanswered_retries.copy()

    def born(self, life: Life, move: Move) -> None:
        offer = None if move.n is None else self.case.asked.offers.get(move.n)
        if offer is None or move.n is None:
            if move.job not in self.case.planned.jobs:
                self.breach("was neither offered nor planned", job=move.job)
            return
        if move.key is not None and not move.key.startswith(RETRY_OF):
            self._judge_key(move, (move.kind, move.key))
        wrong = self._wrong(move.n, offer, move)
        if wrong is None:
            self._first[move.n] = move.job
        elif self._by_retry(move.n, offer, move):
            life.retried = True
            self._others.setdefault(move.n, []).append(move.job)
        else:
            self.breach(wrong, job=move.job)

    def end(self) -> None:
        for n, offer in self.case.asked.offers.items():
            life = None if offer.job is None else self.case.lives.get(offer.job)
            if life is None:
                continue
            if offer.key is not None and (life.kind, life.key) != (offer.kind, offer.key):
                self.breach(f"was given as the job with key {offer.key!r} of {offer.kind}, which it is not", job=life.job)
            elif life.n != n and not (offer.existed and offer.key is not None):
                self.breach(f"was given as the job of offer {n}, but is that of offer {life.n}", job=life.job)

    def _judge_key(self, move: Move, key: tuple[str, str]) -> None:
        holder = self._by_key.get(key)
        if holder is not None and not self.case.lives[holder].gone:
            self.breach(f"has key {move.key!r} of {move.kind}, which job {holder} had already", job=move.job)
        self._by_key[key] = move.job

    def _wrong(self, n: int, offer: Offer, move: Move) -> str | None:
        if n in self._first:
            return f"is a second job of offer {n}; the first is {self._first[n]}"
        if offer.answer == "refused":
            return f"is there, but offer {n} was refused"
        if (move.kind, move.key) != (offer.kind, offer.key):
            return f"is {move.kind} with key {move.key!r}, but offer {n} was {offer.kind} with key {offer.key!r}"
        if offer.job is not None and offer.job != move.job:
            return f"came of offer {n}, but the client was told job {offer.job}"
        return None

    def _by_retry(self, n: int, offer: Offer, move: Move) -> bool:
        """The same work under a new id, with a key of its own that names the job of which it was made."""
        if move.kind != offer.kind or move.key is None or not move.key.startswith(RETRY_OF):
            return False
        family = [self._first.get(n), *self._others.get(n, ())]
        if move.job in self.case.asked.retried:
            return self.case.asked.retried[move.job] in family
        for origin in family:
            if origin is not None and self._unanswered[origin] > 0:
                self._unanswered[origin] -= 1
                return True
        return False
