"""Everything that the ledger has about one job, request, duty or planned time, in the order of time, for people to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tenure.chaos.ledger import CampaignRecord, ClientCall, EffectRow, Fault, FinalJob, HandlerLine, Ledger, ValueLine
from tenure.chaos.recorded_changes import Move, SeenScheduleChange, StepChange, TermChange, TickChange
from tenure.chaos.verdict import HistoryLine, Violation, ViolationHistory, utc_time

MAX_FAULTS = 40
"""Faults shown in one history; during a long one there are hundreds."""

MAX_CHANGES = 40
"""Changes shown of one duty, or of all times of a schedule: the last ones."""

MAX_LENGTH = 120  # characters of an output


def collect_histories(
    ledger: Ledger, violations: Iterable[Violation], request_of: Callable[[str], int | None]
) -> dict[str, ViolationHistory]:
    """By subject. Reads the ledger once more; `request_of` returns the number of a job's request."""
    drafts = {about.subject: HistoryDraft(about, request_of(about.job) if about.job else None) for about in violations}
    if not drafts:
        return {}
    index = DraftIndex(drafts.values())
    _add_events(ledger, index)
    _add_steps(ledger, index)
    _add_schedules(ledger, index)
    _add_end(ledger, index)
    campaign, faults = ledger.campaign(), list(ledger.faults())
    return {subject: draft.history(campaign, faults) for subject, draft in drafts.items()}


class HistoryDraft:
    def __init__(self, about: Violation, n: int | None) -> None:
        self.subject = about.subject
        self.job = about.job
        self.n = about.n if n is None else n
        self.duty = about.duty
        self.schedule, self.planned = about.schedule, about.planned
        self._events: list[tuple[float, str]] = []
        self._at_the_end: list[str] = []

    def add(self, at: float, what: str, job: str | None = None) -> None:
        self._events.append((at, self._prefix(job) + what))

    def add_at_the_end(self, what: str, job: str | None = None) -> None:
        self._at_the_end.append(self._prefix(job) + what)

    def history(self, campaign: CampaignRecord, faults: Iterable[Fault]) -> ViolationHistory:
        many = self.duty is not None or (self.schedule is not None and self.planned is None)
        events = self._events[-MAX_CHANGES:] if many else self._events
        events = sorted([*events, *_faults_during(events, faults)], key=lambda event: event[0])
        lines = [HistoryLine(at - campaign.began, what) for at, what in events]
        return ViolationHistory(self.subject, (*lines, *(HistoryLine(None, what) for what in self._at_the_end)))

    def is_about(self, change: SeenScheduleChange | TickChange) -> bool:
        if self.planned is None:
            return True
        if isinstance(change, TickChange):
            includes = change.planned <= self.planned <= (change.until or change.planned)
            return includes or (self.job is not None and change.job == self.job)
        return change.was_since is None or change.since is None or change.was_since < self.planned <= change.since

    def _prefix(self, job: str | None) -> str:
        """Other jobs of the same request are part of the history as well."""
        return "" if job is None or job == self.job else f"job {job}: "


def _faults_during(events: list[tuple[float, str]], faults: Iterable[Fault]) -> Iterator[tuple[float, str]]:
    if not events:
        return
    begin, end = min(events)[0], max(events)[0]
    found = [fault for fault in faults if fault.began <= end and fault.ended >= begin]
    yield from ((fault.began, describe_fault(fault)) for fault in found[:MAX_FAULTS])
    if len(found) > MAX_FAULTS:
        yield end, f"and {len(found) - MAX_FAULTS} more faults"


class DraftIndex:
    """Finds the drafts that a line of the ledger belongs to."""

    def __init__(self, drafts: Iterable[HistoryDraft]) -> None:
        self._by_job: dict[str, HistoryDraft] = {}
        self._by_n: dict[int, list[HistoryDraft]] = {}
        self._by_duty: dict[str, HistoryDraft] = {}
        self._by_schedule: dict[str, list[HistoryDraft]] = {}
        for draft in drafts:
            if draft.job is not None:
                self._by_job[draft.job] = draft
            if draft.n is not None:
                self._by_n.setdefault(draft.n, []).append(draft)
            if draft.duty is not None:
                self._by_duty[draft.duty] = draft
            if draft.schedule is not None:
                self._by_schedule.setdefault(draft.schedule, []).append(draft)

    def of_job(self, job: str | None, n: int | None = None) -> Iterator[HistoryDraft]:
        draft = None if job is None else self._by_job.get(job)
        if draft is not None:
            yield draft
        if n is not None:
            yield from (other for other in self._by_n.get(n, ()) if other is not draft)

    def of_call(self, call: ClientCall) -> set[HistoryDraft]:
        found = {draft for request in call.requests for draft in self.of_job(None, request.n)}
        if call.verb == "emit":
            found.update(self.of_job(None, int(call.reply)))
        for job in (call.job, call.reply if isinstance(call.reply, str) else None, *call.ids):
            found.update(self.of_job(job))
        return found

    def of_schedule(self, name: str, change: SeenScheduleChange | TickChange) -> Iterator[HistoryDraft]:
        yield from (draft for draft in self._by_schedule.get(name, ()) if draft.is_about(change))

    def of_duty(self, duty: str) -> HistoryDraft | None:
        return self._by_duty.get(duty)


def _add_events(ledger: Ledger, index: DraftIndex) -> None:
    for call in ledger.calls():
        for draft in index.of_call(call):
            draft.add(call.began, describe_call(call, draft.job, draft.n))
    for move in ledger.moves():
        for draft in index.of_job(move.job, move.n):
            draft.add(move.at, describe_move(move), move.job)
    for line in ledger.runs():
        for draft in index.of_job(line.job, line.n):
            draft.add(line.at, describe_handler_line(line), line.job)
    for change in ledger.terms():
        duty = index.of_duty(change.duty)
        if duty is not None:
            duty.add(change.at, describe_term(change))


def _add_steps(ledger: Ledger, index: DraftIndex) -> None:
    for change in ledger.steps():
        for draft in index.of_job(change.job):
            draft.add(change.at, describe_step(change), change.job)
    for line in ledger.values():
        for draft in index.of_job(line.job):
            draft.add(line.at, describe_value(line), line.job)


def _add_schedules(ledger: Ledger, index: DraftIndex) -> None:
    for change in ledger.schedules():
        for draft in index.of_schedule(change.name, change):
            draft.add(change.at, describe_schedule(change))
    for tick in ledger.ticks():
        for draft in index.of_schedule(tick.schedule, tick):
            draft.add(tick.at, describe_tick(tick))


def _add_end(ledger: Ledger, index: DraftIndex) -> None:
    for final in ledger.final():
        for draft in index.of_job(final.job, final.n):
            draft.add_at_the_end(describe_final(final), final.job)
    for effect in ledger.effects():
        for draft in index.of_job(effect.job, effect.n):
            draft.add_at_the_end(describe_effect(effect), effect.job)


# One line of the ledger as text


def describe_call(call: ClientCall, job: str | None, n: int | None) -> str:
    took = f"answered after {call.ended - call.began:.3f} s: {call.answer}"
    if call.verb == "emit":
        return f"client    emit of its event, {took}"
    if call.verb != "enqueue":
        reply = "" if call.reply is None else f", {_short(call.reply)}"
        return f"client    {call.verb} of {'this job' if call.job == job else f'job {call.job}'}, {took}{reply}"
    requests = [
        f"request {request.n} ({_facts(kind=request.kind, key=request.key)})" + _returned(call, index, job)
        for index, request in enumerate(call.requests)
        if request.n == n or job in call.ids[index : index + 1]
    ]
    return f"client    enqueue, {took}: {'; '.join(requests)}"


def describe_move(move: Move) -> str:
    facts = _facts(
        fence=move.fence,
        claim=move.claim,
        worker=move.worker,
        attempt=f"{move.attempt}/{move.max_attempts}",
        crashes=move.crashes or None,
        position=move.position or None,
        output=move.output,
    )
    return f"{move.relation:<9} {move.was or 'new'} -> {move.state or 'deleted'} (change {move.seq}; {facts})"


def describe_handler_line(line: HandlerLine) -> str:
    return f"handler   {line.what} ({_facts(fence=line.fence, attempt=line.attempt, worker=line.worker, pid=line.pid)})"


def describe_step(change: StepChange) -> str:
    facts = _facts(change=change.seq, fence=change.fence, number=change.number, output=change.output)
    return f"step      {change.step!r} ({change.what}) {change.was or 'new'} -> {change.state or 'deleted'} ({facts})"


def describe_value(line: ValueLine) -> str:
    facts = _facts(fence=line.fence, worker=line.worker, value=line.value, needs=line.needs or None, given=line.given or None)
    return f"workflow  {line.what} {line.step!r} ({facts})"


def describe_fault(fault: Fault) -> str:
    facts = [fault.target, fault.detail, f"{fault.ended - fault.began:.3f} s", "" if fault.done else "not done"]
    return f"fault     {fault.kind} ({', '.join(filter(None, facts))})"


def describe_term(change: TermChange) -> str:
    before, after = f"{change.was_holder}, term {change.was_term}", f"{change.holder}, term {change.term}"
    return f"leader    {before} -> {after} (change {change.seq})"


def describe_schedule(change: SeenScheduleChange) -> str:
    if change.since is None:
        return f"schedule  deleted (change {change.seq})"
    facts = _facts(
        kind=change.kind,
        cron=change.cron,
        every=change.every,
        overlap=change.overlap,
        catch_up=change.catch_up,
        paused=change.paused or None,
        retired=change.retired or None,
    )
    since = "new" if change.was_since is None else utc_time(change.was_since)
    return f"schedule  recorded up to: {since} -> {utc_time(change.since)} (change {change.seq}; {facts})"


def describe_tick(tick: TickChange) -> str:
    span = utc_time(tick.planned) + (f" to {utc_time(tick.until)}, {tick.times} times" if tick.until is not None else "")
    facts = _facts(change=tick.seq, transaction=tick.xact, job=tick.job, by=tick.by)
    return f"tick      {span}: {tick.was or 'new'} -> {tick.outcome or 'deleted'} ({facts})"


def describe_final(final: FinalJob) -> str:
    facts = _facts(fence=final.fence, claim=final.claim, worker=final.worker, lease_left=final.lease_left, output=final.output)
    return f"{final.state} ({facts})"


def describe_effect(effect: EffectRow) -> str:
    return f"a row in {effect.relation} ({_facts(request=effect.n, job=effect.job, fence=effect.fence)})"


def _returned(call: ClientCall, index: int, job: str | None) -> str:
    if call.answer != "ok" or index >= len(call.ids):
        return ""
    returned = "this job" if call.ids[index] == job else f"job {call.ids[index]}"
    existed = ", which existed already" if any(call.existed[index : index + 1]) else ""
    return f" returned {returned}{existed}"


def _facts(**facts: Any) -> str:
    return ", ".join(f"{name} {_short(value)}" for name, value in facts.items() if value is not None)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"
