"""What clients asked for and what they were told, by offer and by job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from sys import intern
from typing import NamedTuple

from tenure.chaos.ledger import Call

ANSWERS = frozenset({"ok", "refused", "unknown"})
ABOUT_A_JOB = frozenset({"cancel", "delete", "retry", "replay", "result"})


class Offered(NamedTuple):
    kind: str
    key: str | None
    answer: str
    job: str | None
    """The job that the client was told."""
    existed: bool
    began: float
    ended: float


class Answer(NamedTuple):
    """A client was told of this job, by a call that lasted from then to then."""

    job: str
    began: float
    ended: float


class Asked:
    def __init__(self) -> None:
        self.calls = 0
        self.offers: dict[int, Offered] = {}
        self.about: dict[str, list[Call]] = {}
        self.retried: dict[str, str] = {}
        """By the id of a job that was made of a finished one: the finished one's."""
        self.unanswered_retries: Counter[str] = Counter()
        self.deleted: set[str] = set()
        """Jobs of which somebody asked that they go, whatever the answer was, unless nothing was done."""
        self.canceled: set[str] = set()
        self.twice: list[int] = []
        self.malformed: list[str] = []

    def hear(self, call: Call) -> None:
        self.calls += 1
        if call.answer not in ANSWERS:
            self.malformed.append(f"a call of {call.verb} has the answer {call.answer!r}")
        elif call.verb == "enqueue":
            self._hear_offers(call)
        elif call.verb in ABOUT_A_JOB and call.job is not None:
            self._hear_about(call, call.job)
        else:
            self.malformed.append(f"a call of {call.verb} is not one that is known, or names no job")

    def accepted(self) -> Iterator[Answer]:
        """The jobs that clients were told. One may come several times."""
        for offered in self.offers.values():
            if offered.job is not None:
                yield Answer(offered.job, offered.began, offered.ended)
        for calls in self.about.values():
            for call in calls:
                if call.verb in ("retry", "replay") and call.answer == "ok" and isinstance(call.told, str):
                    yield Answer(call.told, call.began, call.ended)

    def _hear_offers(self, call: Call) -> None:
        told = call.answer == "ok"
        if told and not len(call.offers) == len(call.ids) == len(call.existed):
            self.malformed.append(f"an enqueue of {len(call.offers)} jobs was answered with {len(call.ids)} ids")
            told = False
        for place, offer in enumerate(call.offers):
            if offer.n in self.offers:
                self.twice.append(offer.n)
                continue
            job, existed = (call.ids[place], call.existed[place]) if told else (None, False)
            kind, answer = intern(offer.kind), intern(call.answer)
            self.offers[offer.n] = Offered(kind, offer.key, answer, job, existed, call.began, call.ended)

    def _hear_about(self, call: Call, job: str) -> None:
        self.about.setdefault(job, []).append(call)
        if call.answer == "refused":
            return
        if call.verb == "delete":
            self.deleted.add(job)
        elif call.verb == "cancel":
            self.canceled.add(job)
        elif call.verb == "retry" and call.answer == "unknown":
            self.unanswered_retries[job] += 1
        elif call.verb == "retry" and isinstance(call.told, str) and call.told != job:
            self.retried[call.told] = job
