"""Jobs from enqueue to end: I1 none is lost, I2 none appears from nowhere, I3 one outcome, I7 legal state changes, I14 all work
finishes, I15 replies to clients are true. Rows written together with a job: I17 by its handler, I18 by its caller."""

from __future__ import annotations

from typing import Any

from tenure.chaos.invariants.lookups import AnsweredRequest
from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.invariants.traces import ATOMIC, CHAIN_STARTS, CHAINED, CHILD, ORDERED, WORKFLOW, JobTrace
from tenure.chaos.ledger import ClientCall, EffectRow, FinalJob
from tenure.chaos.recorded_changes import Move
from tenure.chaos.verdict import Invariant
from tenure.model.states import FINISHED, FIRST, HELD, LEGAL_MOVES, State

LEGAL = frozenset((str(before), str(after)) for before, allowed in LEGAL_MOVES.items() for after in allowed)
FIRST_STATES = frozenset(map(str, FIRST))
FINISHED_STATES = frozenset(map(str, FINISHED))
HELD_STATES = frozenset(map(str, HELD))

RETRY_KEY_PREFIX = "retry of "
"""How the key begins of a job that a retry of a finished job created."""


class NoJobLost(Rule):
    invariant = Invariant(
        "I1",
        "no accepted job is lost",
        "every job whose id was returned to a client exists at the end, or was deleted on request",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._unrecorded: set[str] = set()

    def on_final(self, job: JobTrace | None, final: FinalJob) -> None:
        if job is None:
            self._unrecorded.add(final.job)

    def at_end(self) -> None:
        lost: set[str] = set()
        for accepted in self.case.calls.accepted():
            job = self.case.jobs.get(accepted.job)
            if self._exists(accepted.job, job) or self._was_deleted(accepted.job, job) or accepted.job in lost:
                continue
            if job is None and self.case.lost_commits.overlap(accepted.began, accepted.ended):
                continue  # the promoted standby never had it
            lost.add(accepted.job)
            self.report(_how_lost(job), job=accepted.job)

    def _exists(self, job_id: str, job: JobTrace | None) -> bool:
        return job_id in self._unrecorded if job is None else job.in_final

    def _was_deleted(self, job_id: str, job: JobTrace | None) -> bool:
        return job is not None and job.gone and job_id in self.case.calls.deleted


def _how_lost(job: JobTrace | None) -> str:
    if job is None:
        return "was accepted, but no change of its row was recorded"
    if job.gone:
        return f"was accepted and is gone, last recorded as {job.removed_as or job.outcome}, without a request to delete it"
    return f"was accepted and is gone, last recorded as {job.state}, and its deletion was not recorded"


class NoUnknownJob(Rule):
    invariant = Invariant(
        "I2",
        "no job appears from nowhere",
        "every job comes from an enqueue, a schedule or a retry; one request makes at most one job, and so does one key",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._first: dict[int, str] = {}
        """By request, the job it made."""
        self._retries: dict[int, list[str]] = {}
        """By request, the jobs that retries made of it."""
        self._by_key: dict[tuple[str, str], str] = {}
        self._unanswered = case.calls.unanswered_retries.copy()

    def on_inserted(self, job: JobTrace, move: Move) -> None:
        request = None if move.n is None else self.case.calls.requests.get(move.n)
        if request is None or move.n is None:
            if move.job not in self.case.schedules.tick_of_job and not _is_made_by_a_run(move):
                self.report("was neither requested by a client nor planned by a schedule", job=move.job)
            return
        if move.key is not None and not move.key.startswith(RETRY_KEY_PREFIX):
            self._check_key(move, (move.kind, move.key))
        wrong = self._mismatch(move.n, request, move)
        if wrong is None:
            self._first[move.n] = move.job
        elif self._is_retry(move.n, request, move):
            job.made_by_retry = True
            self._retries.setdefault(move.n, []).append(move.job)
        else:
            self.report(wrong, job=move.job)

    def at_end(self) -> None:
        for n, request in self.case.calls.requests.items():
            job = None if request.job is None else self.case.jobs.get(request.job)
            if job is None:
                continue
            if request.key is not None and (job.kind, job.key) != (request.kind, request.key):
                self.report(f"was returned as the job with key {request.key!r} of {request.kind}, but it is not", job=job.job)
            elif job.n != n and not (request.existed and request.key is not None):
                self.report(f"was returned for request {n}, but was made by request {job.n}", job=job.job)

    def _check_key(self, move: Move, key: tuple[str, str]) -> None:
        holder = self._by_key.get(key)
        if holder is not None and not self.case.jobs[holder].gone:
            self.report(f"has key {move.key!r} of {move.kind}, which job {holder} had already", job=move.job)
        self._by_key[key] = move.job

    def _mismatch(self, n: int, request: AnsweredRequest, move: Move) -> str | None:
        if n in self._first:
            return f"is a second job of request {n}; the first is {self._first[n]}"
        if request.answer == "refused":
            return f"exists, but request {n} was refused"
        if (move.kind, move.key) != (request.kind, request.key):
            return f"is {move.kind} with key {move.key!r}, but request {n} was for {request.kind} with key {request.key!r}"
        if request.job is not None and request.job != move.job:
            return f"was made by request {n}, but job {request.job} was returned to the client"
        return None

    def _is_retry(self, n: int, request: AnsweredRequest, move: Move) -> bool:
        """The same work under a new id, with a key of its own that names the finished job."""
        if move.kind != request.kind or move.key is None or not move.key.startswith(RETRY_KEY_PREFIX):
            return False
        jobs_of_request = [self._first.get(n), *self._retries.get(n, ())]
        if move.job in self.case.calls.retried:
            return self.case.calls.retried[move.job] in jobs_of_request
        for origin in jobs_of_request:
            if origin is not None and self._unanswered[origin] > 0:
                self._unanswered[origin] -= 1
                return True
        return False


def _is_made_by_a_run(move: Move) -> bool:
    """Made by the run of another job: I24 checks where links of chains come from, I12 children of workflows."""
    return move.kind == CHILD or (move.kind.startswith(CHAINED) and move.kind != CHAIN_STARTS)


class OneOutcome(Rule):
    invariant = Invariant("I3", "one outcome per job", "a job enters history once, and never becomes a live job again")

    def on_settled(self, job: JobTrace, move: Move) -> None:
        if job.outcome is not None:
            self.report(f"entered history as {move.state}, but had entered it before as {job.outcome}", job=move.job)

    def on_history_changed(self, _job: JobTrace, move: Move) -> None:
        if move.state != move.was:
            self.report(f"changed from {move.was} to {move.state} in history", job=move.job)

    def on_claimed(self, job: JobTrace, _move: Move) -> None:
        if job.reinserted:
            self._live_again(job)

    on_changed = on_claimed

    def on_reinserted(self, job: JobTrace, move: Move) -> None:
        if job.relation == "jobs" or job.reinserted:
            self.report("has two rows in jobs", job=move.job)

    def at_end(self) -> None:
        for job in self.case.jobs.values():
            if job.reinserted:
                self._live_again(job)

    def _live_again(self, job: JobTrace) -> None:
        self.report(f"was inserted into jobs again after it had ended ({job.outcome or 'deleted'})", job=job.job)


class OnlyLegalMoves(Rule):
    invariant = Invariant(
        "I7",
        "only legal state changes",
        "states change only as the table of legal moves allows, and rows are deleted only on request",
    )

    def on_inserted(self, _job: JobTrace, move: Move) -> None:
        if move.state not in FIRST_STATES:
            self.report(f"was inserted as {move.state}", job=move.job)

    def on_claimed(self, _job: JobTrace, move: Move) -> None:
        self._check(move.was, move)

    def on_changed(self, _job: JobTrace, move: Move) -> None:
        # The same state under the same claim: another position, or a renewed lease.
        if move.was != move.state or move.claim != move.was_claim:
            self._check(move.was, move)

    def on_settled(self, job: JobTrace, move: Move) -> None:
        if job.relation == "jobs":
            self.report(f"entered history as {move.state} while it was still in jobs as {job.state}", job=move.job)
        elif move.state not in FINISHED_STATES:
            self.report(f"entered history as {move.state}", job=move.job)
        elif job.removed_as is not None:
            self._check(job.removed_as, move)
        if move.state == State.CANCELED and move.claim is None and move.job not in self.case.calls.canceled:
            self.report("was canceled without a request", job=move.job)

    def on_history_changed(self, _job: JobTrace, move: Move) -> None:
        if move.was != move.state:
            self._check(move.was, move)

    def on_history_deleted(self, _job: JobTrace, move: Move) -> None:
        if move.job not in self.case.calls.deleted:
            self.report(f"was deleted from history ({move.was}) without a request", job=move.job)

    def at_end(self) -> None:
        for job in self.case.jobs.values():
            if job.removed_as is not None and job.job not in self.case.calls.deleted:
                what = f"was deleted from jobs ({job.removed_as}) without a request, and did not enter history"
                self.report(what, job=job.job)

    def _check(self, before: str | None, move: Move) -> None:
        if (before, move.state) not in LEGAL:
            self.report(f"went from {before} to {move.state} (change {move.seq})", job=move.job)


class AllWorkFinishes(Rule):
    invariant = Invariant(
        "I14", "all work finishes", "once the faults are over, all jobs finish, and none is held by a worker that is not alive"
    )

    def on_final(self, _job: JobTrace | None, final: FinalJob) -> None:
        if final.state in FINISHED_STATES or final.state == State.DEAD_LETTER:
            return
        self.report(f"is still {final.state}", job=final.job)
        if final.state in HELD_STATES and (final.lease_left is None or final.lease_left <= 0):
            self.report(f"is held by worker {final.worker}, whose lease has expired", job=final.job)

    def at_end(self) -> None:
        if not self.case.campaign.drained:
            self.report("ended before all work was done")


class RepliesAreTrue(Rule):
    invariant = Invariant(
        "I15",
        "replies to clients are true",
        "results, cancellations and deletions that were reported to clients agree with the record",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._outputs: dict[str, Any] = {}
        """Of jobs that clients called about: the output at the end or, of deleted jobs, the last one recorded."""

    def on_settled(self, _job: JobTrace, move: Move) -> None:
        if move.job in self.case.calls.by_job:
            self._outputs[move.job] = move.output

    on_history_changed = on_settled

    def on_final(self, _job: JobTrace | None, final: FinalJob) -> None:
        if final.job in self.case.calls.by_job:
            self._outputs[final.job] = final.output

    def at_end(self) -> None:
        for job_id, calls in self.case.calls.by_job.items():
            job = self.case.jobs.get(job_id)
            if job is not None:
                for call in calls:
                    self._check(job, call)

    def _check(self, job: JobTrace, call: ClientCall) -> None:
        if call.answer != "ok" or self.case.lost_commits.overlap(call.began, call.ended):
            return
        if call.verb == "result" and isinstance(call.reply, list | tuple):
            self._check_result(job, *call.reply)
        elif call.verb == "cancel" and call.reply and job.outcome != State.CANCELED and not _was_rolling_back(job):
            self.report(f"was reported as canceled, but is {job.outcome or job.state}", job=job.job)
        elif call.verb == "delete" and call.reply and not job.gone:
            self.report(f"was reported as deleted, but exists as {job.state}", job=job.job)

    def _check_result(self, job: JobTrace, state: str, output: Any) -> None:
        if state == State.DEAD_LETTER:
            if not job.was_dead_letter:
                self.report("was reported as dead_letter, but never was one", job=job.job)
        elif state in FINISHED_STATES:
            if state != job.outcome:
                self.report(f"was reported as {state}, but is {job.outcome or job.state}", job=job.job)
            elif job.kind == CHAIN_STARTS:
                pass  # the reply is the output of the last link
            elif output != self._outputs.get(job.job):
                self.report(f"was reported with output {output}, but has {self._outputs.get(job.job)}", job=job.job)


def _was_rolling_back(job: JobTrace) -> bool:
    """A workflow that has something to undo runs once more when it is canceled. If it had failed before and was rolled back, it
    ends as failed; if its process crashes several times meanwhile, it is quarantined."""
    return job.kind.startswith(WORKFLOW) and (job.outcome == State.FAILED or job.state == State.DEAD_LETTER)


# Rows written together with a job


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
