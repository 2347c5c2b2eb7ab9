"""Claims and runs: I4 the last claim settles, I5 one run per claim, I6 a stale holder writes nothing, I8 slots, I13 attempts and
crashes, I20 no claimed job is abandoned."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenure.chaos.invariants.jobs import HELD_STATES
from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.invariants.traces import CHAINED, IN_PROCESS, REFUSED, STUBBORN, ClaimTrace, JobTrace
from tenure.chaos.ledger import EffectRow, HandlerLine
from tenure.chaos.recorded_changes import Move, StepChange
from tenure.chaos.verdict import Invariant
from tenure.model.states import State
from tenure.worker.process.pool import START_PATIENCE

MAX_NAMED = 5  # jobs in a message about too many runs

AFTER_REMOVAL = 2.0
"""Seconds for which a job may still be held when the row of its worker is gone. The statement that removes the row requeues
the jobs as well; this is the time that its record may take."""

OF_A_LIVE_WORKER = 15.0
"""Seconds, not counting faults, within which a worker that is known to run other jobs has started what it claimed, or has
written how a run ended. It compares what it holds with what it runs every five seconds."""

OF_A_DEAD_WORKER = 25.0
"""Seconds, not counting faults, until the jobs of a dead worker are requeued: until its lease ends and the reaper has had
ten seconds of contact."""


class LastClaimSettles(Rule):
    invariant = Invariant(
        "I4", "the last claim settles the job", "fences grow with every claim, and the last claim settles the job"
    )

    def on_claimed(self, job: JobTrace, move: Move) -> None:
        if move.fence <= job.fence:
            self.report(f"was claimed under fence {move.fence} after fence {job.fence}", job=move.job)

    def on_changed(self, job: JobTrace, move: Move) -> None:
        if move.fence != job.fence:
            self.report(f"has fence {move.fence} after fence {job.fence}, without a claim", job=move.job)

    def on_settled(self, job: JobTrace, move: Move) -> None:
        if move.claim is None and move.state == State.CANCELED:
            if move.fence != job.fence:
                self.report(f"was canceled under fence {move.fence}, but had fence {job.fence}", job=move.job)
        elif not job.claims:
            self.report(f"is {move.state} under fence {move.fence}, but was never claimed", job=move.job)
        else:
            self._check(job.claims[-1], job, move)

    def _check(self, last: ClaimTrace, job: JobTrace, move: Move) -> None:
        if move.claim != last.claim_id or move.worker != last.worker:
            self.report(
                f"was settled by claim {move.claim} of worker {move.worker}, but the last claim was {last.claim_id} of worker "
                f"{last.worker} under fence {last.fence}",
                job=move.job,
            )
        highest = max(claim.fence for claim in job.claims)
        if move.fence != highest:
            self.report(f"was settled under fence {move.fence}, but was claimed under fence {highest}", job=move.job)


class OneRunPerClaim(Rule):
    """Claims commit asynchronously: a crash of the server may undo one after its handler has started. Its record is undone as
    well, so its handler seems to be one too many, and the next holder gets the same fence. Only this case is by design."""

    invariant = Invariant(
        "I5", "one run per claim", "each claim is run once, by its holder, unless a crash of the server undid the claim"
    )

    def on_handler_line(self, job: JobTrace | None, line: HandlerLine) -> None:
        if job is None or line.what != "started":
            return
        claim = job.claim_with(line.fence)
        if self._was_lost_in_failover(line, claim):
            return
        if claim is None:
            if not self.case.crashes.overlap(job.inserted_at, self.case.campaign.ended):
                self.report(f"was run by worker {line.worker} under fence {line.fence}, which no worker claimed", job=line.job)
        elif claim.worker == line.worker and not claim.started_at:
            claim.started_at = line.at
        elif not self.case.crashes.overlap(claim.previous_at, claim.at):
            self.report(_run_again(claim, line), job=line.job)

    def _was_lost_in_failover(self, line: HandlerLine, claim: ClaimTrace | None) -> bool:
        """Claimed on a primary whose standby was promoted before it received the claim."""
        before = claim is None or line.at < claim.at
        return before and self.case.lost_commits.overlap(line.at - self.case.campaign.longest, line.at)


def _run_again(claim: ClaimTrace, line: HandlerLine) -> str:
    if claim.worker == line.worker:
        return f"was run twice by worker {line.worker} under fence {line.fence}"
    return f"was run by worker {line.worker} under fence {line.fence}, which worker {claim.worker} had claimed"


class Provenance(NamedTuple):
    """Which run made an output: handlers of a campaign return this."""

    n: Any
    fence: Any
    worker: Any

    @staticmethod
    def of(output: Any) -> Provenance:
        known = output if isinstance(output, dict) else {}
        return Provenance(known.get("n"), known.get("fence"), known.get("worker"))


class StaleHolderWritesNothing(Rule):
    invariant = Invariant("I6", "a stale holder writes nothing", "output and effects come from the run that settled the job")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._without_output: set[str] = set()

    def on_settled(self, job: JobTrace, move: Move) -> None:
        if move.state != State.COMPLETED:
            return
        if move.output is None:
            if not move.kind.startswith(CHAINED):  # only the last link of a chain has an output
                self._without_output.add(move.job)
        else:
            self._check(job, move, Provenance.of(move.output))

    def on_history_changed(self, job: JobTrace, move: Move) -> None:
        if move.state == State.COMPLETED and move.output is not None:
            self._without_output.discard(move.job)
            self._check(job, move, Provenance.of(move.output))

    def on_effect(self, effect: EffectRow) -> None:
        job = None if effect.job is None else self.case.jobs.get(effect.job)
        if effect.relation == "effects" and job and job.outcome == State.COMPLETED and effect.fence != job.fence:
            what = f"completed under fence {job.fence}, but an effect was written under fence {effect.fence}"
            self.report(what, job=job.job)

    def at_end(self) -> None:
        for job_id in sorted(self._without_output):
            self.report("completed without the output that its handler returns", job=job_id)

    def _check(self, job: JobTrace, move: Move, made: Provenance) -> None:
        last = job.claims[-1] if job.claims else None
        stale = last is not None and (made.fence, made.worker) != (last.fence, last.worker)
        if stale or made != (job.n, move.fence, move.worker):
            self.report(
                f"(request {job.n}) was settled under fence {move.fence} of worker {move.worker}, but its output was made for "
                f"request {made.n} under fence {made.fence} of worker {made.worker}",
                job=move.job,
            )


class NoMoreRunsThanSlots(Rule):
    invariant = Invariant("I8", "no more runs than slots", "a process never runs more handlers at once than its concurrency")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._process: tuple[int, str] | None = None
        self._running: set[tuple[str, int]] = set()

    def on_handler_line(self, job: JobTrace | None, line: HandlerLine) -> None:
        process = (line.pid, line.worker)
        if process != self._process:  # lines come process by process
            self._process = process
            self._running.clear()
        if line.what != "started":
            self._running.discard((line.job, line.fence))
        elif job is None or not job.kind.startswith(STUBBORN):
            self._running.add((line.job, line.fence))
            if len(self._running) > self.case.campaign.concurrency:
                what = f"ran in process {line.pid} of worker {line.worker} at the same time as {self._others(line.job)}"
                self.report(what, job=line.job)

    def _others(self, job_id: str) -> str:
        others = sorted(other for other, _ in self._running if other != job_id)
        more = f" and {len(others) - MAX_NAMED} more" if len(others) > MAX_NAMED else ""
        return ", ".join(others[:MAX_NAMED]) + more


class AttemptsCounted(Rule):
    """An attempt is counted when the job is claimed, and refunded if the run did not end by itself."""

    invariant = Invariant(
        "I13",
        "attempts and crashes are counted",
        "neither exceeds its limit, and only a run that ended by itself uses up an attempt",
    )

    def on_inserted(self, _job: JobTrace, move: Move) -> None:
        if move.attempt or move.crashes:
            self.report(f"was inserted with {move.attempt} attempts and {move.crashes} crashes", job=move.job)

    def on_claimed(self, job: JobTrace, move: Move) -> None:
        if move.attempt > move.max_attempts:
            self.report(f"was claimed for attempt {move.attempt} of {move.max_attempts}", job=move.job)
        if move.attempt != job.attempt + 1:
            self.report(f"had {job.attempt} attempts and was claimed for attempt {move.attempt}", job=move.job)
        if move.crashes != job.crashes:
            self.report(f"had {job.crashes} crashes and was claimed with {move.crashes}", job=move.job)

    def on_changed(self, job: JobTrace, move: Move) -> None:
        if move.was in HELD_STATES:
            self._check_end_of_run(job, move)
        elif move.was == State.DEAD_LETTER:
            if move.attempt or move.crashes:
                self.report(f"was replayed with {move.attempt} attempts and {move.crashes} crashes", job=move.job)
        elif (move.attempt, move.crashes) != (job.attempt, job.crashes):
            self.report(f"{_counts_of(job, move)}, but nothing ran", job=move.job)

    def on_settled(self, job: JobTrace, move: Move) -> None:
        if (move.attempt, move.crashes) != (job.attempt, job.crashes):
            self.report(_counts_of(job, move), job=move.job)

    def _check_end_of_run(self, job: JobTrace, move: Move) -> None:
        """The end of a run whose job stays live."""
        # A workflow that came to a point where it waits has survived: its crashes are forgotten.
        crashed = 0 if move.state == State.WAITING and not move.crashes else move.crashes - job.crashes
        limit = self.case.campaign.max_crashes
        if crashed not in (0, 1) or (crashed and move.state not in (State.PENDING, State.DEAD_LETTER)):
            self.report(_counts_of(job, move), job=move.job)
        if move.crashes > limit or (move.crashes == limit and move.state == State.PENDING):
            self.report(f"is {move.state} again after {move.crashes} crashes", job=move.job)
        if job.attempt - move.attempt not in _allowed_refunds(move.state, crashed=crashed > 0):
            self.report(f"{_counts_of(job, move)}: only a run that ended by itself uses up its attempt", job=move.job)


def _allowed_refunds(state: str | None, *, crashed: bool) -> tuple[int, ...]:
    """How many attempts the move at the end of a run may refund."""
    if crashed or state in (State.PENDING, State.SCHEDULED):
        return (1,)
    return (0, 1) if state == State.WAITING else (0,)


def _counts_of(job: JobTrace, move: Move) -> str:
    return (
        f"went from {move.was or job.removed_as} to {move.state}, from {job.attempt} attempts and {job.crashes} crashes "
        f"to {move.attempt} and {move.crashes}"
    )


class NoJobAbandoned(Rule):
    """Checks each claim until it ends: the job must be started, its run must end, and it must be settled or requeued."""

    invariant = Invariant(
        "I20",
        "no claimed job is abandoned",
        "a claimed job is started by its worker, and settled or requeued soon after its run or its worker has ended",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._longest = case.campaign.longest

    def on_handler_line(self, job: JobTrace | None, line: HandlerLine) -> None:
        claim = None if job is None else job.claim_with(line.fence)
        if claim is None or claim.worker != line.worker:
            return
        if line.what != "started" and line.at >= claim.at:
            claim.ended_at = line.at

    def on_step(self, job: JobTrace | None, change: StepChange) -> None:
        """A workflow that records steps runs. What it has done is undone after its function has ended."""
        claim = None if job is None else job.claim_with(change.fence)
        if claim is None:
            return
        claim.stepped_at = max(claim.stepped_at, change.at)
        if claim.ended_at:
            claim.ended_at = max(claim.ended_at, change.at)

    def at_end(self) -> None:
        if not self.case.workers.recorded:
            return
        for job in self.case.jobs.values():
            for claim in job.claims:
                self._check(job, claim)

    def _check(self, job: JobTrace, claim: ClaimTrace) -> None:
        until = min(claim.until, self.case.campaign.ended)
        if until - claim.at < AFTER_REMOVAL:
            return  # most claims are this short
        removed = self.case.workers.removed_at(claim.worker)
        if until - removed > AFTER_REMOVAL:
            self.report(f"was held for {until - removed:.1f} s by worker {claim.worker}, whose row was removed", job=job.job)
        elif claim.ended_at:
            self._check_wait(job, claim, "its run had ended", claim.ended_at, until)
        elif claim.started_at:
            since = max(claim.started_at, claim.stepped_at) + self._longest
            self._check_wait(job, claim, "its run should have ended", since, until)
        else:
            since = claim.at + (START_PATIENCE if job.kind == IN_PROCESS else 0.0)
            self._check_wait(job, claim, "it should have been started", since, until)

    def _check_wait(self, job: JobTrace, claim: ClaimTrace, since_what: str, since: float, until: float) -> None:
        workers = self.case.workers
        since += workers.seconds_stopped(claim.worker, claim.at, until)
        waited = self.case.without_contact.seconds_outside(since, until)
        if waited <= OF_A_DEAD_WORKER:
            spans = workers.active_spans(claim.worker, since, min(until, workers.ended_at(claim.worker)))
            waited = sum(self.case.disturbed.seconds_outside(begin, end) for begin, end in spans)
            if waited <= OF_A_LIVE_WORKER:
                return
        if job.kind.startswith(REFUSED) and self.case.refusals.overlap(since, until):
            return
        held = f"was held by worker {claim.worker} for {until - since:.1f} s after {since_what}"
        self.report(f"{held}, {waited:.1f} s of them without faults", job=job.job)
