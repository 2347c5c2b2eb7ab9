from __future__ import annotations

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.kinds import REFUSED
from tenure.chaos.invariants.lives import Grant, Life
from tenure.chaos.ledger import Run
from tenure.chaos.verdict import Invariant

AFTER_REMOVAL = 2.0
"""Seconds for which a job may still be held when the row of its worker is gone. The statement that removes the row requeues
the jobs as well; this is the time that its record may take."""

OF_A_LIVE_WORKER = 15.0
"""Seconds, apart from faults, in which a worker that is seen to run other jobs has started what it was granted, or has written
how a run ended. It compares what it holds with what it runs every five seconds."""

OF_A_DEAD_WORKER = 25.0
"""Seconds, apart from faults, until the jobs of a worker that died are requeued: until its lease ends and the reaper has had
ten seconds of contact."""


class Attended(Rule):
    """Judges each grant from its moment until the job is moved: it must be started, end, and be settled or requeued."""

    invariant = Invariant(
        "I20",
        "no job is held by nobody",
        "a granted job is started by its worker, and settled or requeued soon after its run or its worker has ended",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._longest = case.course.longest

    def ran(self, life: Life | None, run: Run) -> None:
        grant = None if life is None else life.grant_of(run.fence)
        if grant is None or grant.worker != run.worker:
            return
        if run.what != "started" and run.at >= grant.at:
            grant.ended_at = run.at

    def end(self) -> None:
        if not self.case.workers.recorded:
            return
        for life in self.case.lives.values():
            for grant in life.grants:
                self._judge(life, grant)

    def _judge(self, life: Life, grant: Grant) -> None:
        until = min(grant.until, self.case.course.ended)
        if until - grant.at < AFTER_REMOVAL:
            return  # most of them, by far
        removed = self.case.workers.removed(grant.worker)
        if until - removed > AFTER_REMOVAL:
            self.breach(f"was held for {until - removed:.1f} s by worker {grant.worker}, whose row was gone", job=life.job)
        elif grant.ended_at:
            self._attend(life, grant, "its run had ended", grant.ended_at, until)
        elif grant.started_at:
            self._attend(life, grant, "its run should have ended", grant.started_at + self._longest, until)
        else:
            self._attend(life, grant, "it was granted, and no run of it began", grant.at, until)

    def _attend(self, life: Life, grant: Grant, since_what: str, since: float, until: float) -> None:
        workers = self.case.workers
        since += workers.stopped(grant.worker, grant.at, until)
        waited = self.case.contact.calm(since, until)
        if waited <= OF_A_DEAD_WORKER:
            spans = workers.working(grant.worker, since, min(until, workers.ended(grant.worker)))
            waited = sum(self.case.unrest.calm(begin, end) for begin, end in spans)
            if waited <= OF_A_LIVE_WORKER:
                return
        if life.kind.startswith(REFUSED) and self.case.refusals.touch(since, until):
            return
        held = f"was held by worker {grant.worker} for {until - since:.1f} s after {since_what}"
        self.breach(f"{held}, {waited:.1f} s of them without faults", job=life.job)
