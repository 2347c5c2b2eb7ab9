"""Builds ledgers: a campaign in which everything works as it should, except what a test overrides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from tenure.chaos.checker import check
from tenure.chaos.ledger import (
    AuditLine,
    CampaignRecord,
    ClientCall,
    EffectRow,
    Fault,
    FinalJob,
    FinalLink,
    HandlerLine,
    JobRequest,
    Ledger,
    ValueLine,
    as_line,
)
from tenure.chaos.recorded_changes import (  # fmt: skip
    LimitChange,
    Move,
    SeenScheduleChange,
    StepChange,
    TermChange,
    TickChange,
    WorkerChange,
)
from tenure.chaos.verdict import CheckerVerdict

BEGAN = 1_000_000.0
TICK = 0.01  # between two things that happen


@dataclass
class Row:
    """The current row of a job."""

    id: str
    n: int | None
    kind: str
    key: str | None
    queue: str
    priority: int
    relation: str | None = "jobs"
    state: str = "pending"
    fence: int = 0
    claim: str | None = None
    worker: str | None = None
    attempt: int = 0
    max_attempts: int = 3
    crashes: int = 0
    position: int = 0
    output: Any = None
    due: float | None = None


@dataclass
class LedgerBuilder:
    """Does what Tenure does, and writes what the recorder would. Tests break an invariant with `overrides`."""

    campaign: CampaignRecord = field(
        default_factory=lambda: CampaignRecord(
            seed=7,
            lease=2.0,
            began=BEGAN,
            healed=BEGAN + 900,
            ended=BEGAN + 1000,
            drained=True,
            concurrency=2,
            max_crashes=3,
            late=5.0,
        )
    )
    calls: list[ClientCall] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    runs: list[HandlerLine] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    terms: list[TermChange] = field(default_factory=list)
    effects: list[EffectRow] = field(default_factory=list)
    links: list[FinalLink] = field(default_factory=list)
    audit: list[AuditLine] = field(default_factory=list)
    steps: list[StepChange] = field(default_factory=list)
    values: list[ValueLine] = field(default_factory=list)
    workers: list[WorkerChange] = field(default_factory=list)
    limits: list[LimitChange] = field(default_factory=list)
    schedules: list[SeenScheduleChange] = field(default_factory=list)
    ticks: list[TickChange] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)
    final: dict[str, FinalJob] = field(default_factory=dict)
    """Set by tests in which a job at the end differs from its last move."""
    lost: set[str] = field(default_factory=set)
    now: float = BEGAN

    def __post_init__(self) -> None:
        self._numbers = count(1)
        self._positions = count(1)
        self._claims = count(1)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def set(self, **changes: Any) -> None:
        self.campaign = replace(self.campaign, **changes)

    # Calls of clients

    def call(self, verb: str, answer: str = "ok", **more: Any) -> None:
        began = self._tick()
        self.calls.append(ClientCall(verb, began, self._tick(), answer, **more))

    def request(self, kind: str = "quick", key: str | None = None, answer: str = "ok", **reply: Any) -> int:
        """Only the call; returns its number."""
        n = reply.pop("n", None) or next(self._numbers)
        ids = (reply["job"],) if answer == "ok" else ()
        existed = (reply.get("existed", False),) * len(ids)
        self.call("enqueue", answer, requests=(JobRequest(n, kind, key),), ids=ids, existed=existed)
        return n

    def enqueue(self, kind: str = "quick", key: str | None = None, *, answer: str = "ok", **row: Any) -> Row:
        number = len(self.rows) + 1
        job = row.pop("id", f"job-{number}")
        n = self.request(kind, key, answer, job=job, n=row.pop("n", None))
        return self.insert(job, n, kind, key, **row)

    def cancel(self, row: Row, *, reply: bool = True, answer: str = "ok") -> None:
        self.call("cancel", answer, job=row.id, reply=reply)
        self.remove(row)
        self.settle(row, "canceled", claim=None)

    def delete(self, row: Row, *, reply: bool = True, answer: str = "ok") -> None:
        self.call("delete", answer, job=row.id, reply=reply)
        self.remove(row)

    def result(self, row: Row, state: str | None = None, output: Any = ...) -> None:
        self.call("result", job=row.id, reply=[state or row.state, row.output if output is ... else output])

    def retry_finished(self, row: Row, *, answer: str = "ok", **made: Any) -> Row:
        job = f"job-{len(self.rows) + 1}"
        self.call("retry", answer, job=row.id, reply=job if answer == "ok" else None)
        return self.insert(job, row.n, row.kind, f"retry of {row.id}", **made)

    def replay(self, row: Row, **overrides: Any) -> None:
        self.call("replay", job=row.id, reply=row.id)
        self.move(row, **{"state": "pending", "attempt": 0, "crashes": 0, "position": next(self._positions)} | overrides)

    # Changes of a job

    def insert(self, job: str, n: int | None, kind: str = "quick", key: str | None = None, **more: Any) -> Row:
        queue, priority = more.pop("queue", "default"), more.pop("priority", 50)
        row = Row(job, n, kind, key, queue, priority, **more)
        if row.state == "pending" and not row.position:
            row.position = next(self._positions)
        self.rows[job] = row
        self._note(row, None, None)
        return row

    def claim(self, row: Row, worker: str = "w1", **overrides: Any) -> None:
        claimed = {"state": "running", "claim": f"c{next(self._claims)}", "worker": worker}
        self.move(row, **claimed | {"fence": row.fence + 1, "attempt": row.attempt + 1} | overrides)

    def start(self, row: Row, **overrides: Any) -> None:
        self.run("started", row, **overrides)

    def run(self, what: str, row: Row, **overrides: Any) -> None:
        worker = overrides.pop("worker", row.worker)
        run = HandlerLine(what, self._tick(), row.id, row.n, row.fence, row.attempt, worker, 100 + int(worker[1:]))
        self.runs.append(run._replace(**overrides))

    def complete(self, row: Row, **overrides: Any) -> None:
        self.run("returned", row)
        self.remove(row)
        self.settle(row, "completed", **{"output": self.output_of(row)} | overrides)

    def finish(self, row: Row, state: str = "completed", worker: str = "w1") -> Row:
        """From pending to its end."""
        self.claim(row, worker)
        self.start(row)
        if state == "completed":
            self.complete(row)
        else:
            self.run("raised", row)
            self.remove(row)
            self.settle(row, state)
        return row

    def done(self, kind: str = "quick", **row: Any) -> Row:
        return self.finish(self.enqueue(kind, **row))

    def fail(self, row: Row, **overrides: Any) -> None:
        """Uses up an attempt: the job is retried, or becomes a dead letter."""
        self.run("raised", row)
        over = row.attempt >= row.max_attempts
        self.release(row, **{"state": "dead_letter" if over else "retry"} | overrides)

    def snooze(self, row: Row, **overrides: Any) -> None:
        self.run("raised", row)
        self.release(row, **{"state": "scheduled", "attempt": row.attempt - 1} | overrides)

    def requeue(self, row: Row, **overrides: Any) -> None:
        self.release(row, **{"state": "pending", "attempt": row.attempt - 1} | overrides)

    def crash(self, row: Row, **overrides: Any) -> None:
        over = row.crashes + 1 >= self.campaign.max_crashes
        state = "dead_letter" if over else "pending"
        self.release(row, **{"state": state, "attempt": row.attempt - 1, "crashes": row.crashes + 1} | overrides)

    def release(self, row: Row, **changes: Any) -> None:
        self.move(row, **{"claim": None, "worker": None} | changes)

    def promote(self, row: Row, **overrides: Any) -> None:
        self.move(row, **{"state": "pending", "position": next(self._positions)} | overrides)

    def move(self, row: Row, **changes: Any) -> None:
        was, was_claim = row.state, row.claim
        for name, value in changes.items():
            setattr(row, name, value)
        self._note(row, was, was_claim)

    def remove(self, row: Row) -> None:
        """Deletes the row from its table."""
        seq, at = len(self.moves) + 1, self._tick()
        gone = _move(row, seq, at, row.state, row.claim)
        self.moves.append(gone._replace(state=None, claim=None, position=0, n=None, key=None, output=None))
        row.relation = None

    def settle(self, row: Row, state: str, **overrides: Any) -> None:
        row.relation, row.state, row.position = "history", state, 0
        for name, value in overrides.items():
            setattr(row, name, value)
        self._note(row, None, None)

    def output_of(self, row: Row, **overrides: Any) -> dict[str, Any]:
        return {"n": row.n, "fence": row.fence, "worker": row.worker} | overrides

    # Workflows

    def suspend(self, row: Row, **overrides: Any) -> None:
        self.run("aborted", row)
        self.release(row, **{"state": "waiting", "attempt": row.attempt - 1, "crashes": 0, "position": -2} | overrides)

    def record(self, row: Row, step: str, output: Any = None, **overrides: Any) -> None:
        """A change of the row of a step; a new row by default, of a step that is done."""
        known = {change.step: change.number for change in self.steps if change.job == row.id}
        number = known.get(step, len(known) + 1)
        change = StepChange(len(self.steps) + 1, self._tick(), row.id, step, number, "step", None, "done", row.fence, output)
        self.steps.append(change._replace(**overrides))

    def ran(self, row: Row, step: str, value: str, **overrides: Any) -> None:
        self._value("ran", row, step, value, **overrides)

    def saw(self, row: Row, step: str, value: str, **overrides: Any) -> None:
        self._value("saw", row, step, value, **overrides)

    def step(self, row: Row, step: str, value: str | None = None, **overrides: Any) -> str:
        """A step that is run, recorded and seen. Returns its value."""
        value = value or f"{step} under {row.fence}"
        self.ran(row, step, value)
        self.record(row, step, value, **overrides)
        self.saw(row, step, value)
        return value

    def emit(self, n: int, *, answer: str = "ok") -> None:
        self.call("emit", answer, reply=str(n))

    def _value(self, what: str, row: Row, step: str, value: str, **overrides: Any) -> None:
        line = ValueLine(what, self._tick(), row.id, row.fence, row.worker or "", step, value)
        self.values.append(line._replace(**overrides))

    # Other events

    def fault(self, kind: str, seconds: float = 0.0, **overrides: Any) -> None:
        began = self._tick()
        self.wait(seconds)
        self.faults.append(Fault(kind, began, self.now, "target", done=True)._replace(**overrides))

    def worker(self, what: str, worker: str = "w1", **overrides: Any) -> None:
        """`what`: registered, condemned, removed."""
        change = WorkerChange(len(self.workers) + 1, self._tick(), worker, 100 + int(worker[1:]), what, None)
        self.workers.append(change._replace(**overrides))

    def limit(self, kind: str, concurrency: int | None, *, rate: bool = False) -> None:
        self.limits.append(LimitChange(len(self.limits) + 1, self._tick(), f"kind:{kind}", concurrency, rate))

    def lead(self, holder: str, term: int, duty: str = "reaper", **overrides: Any) -> None:
        before = next((known for known in reversed(self.terms) if known.duty == duty), None)
        was = (None, None) if before is None else (before.holder, before.term)
        self.terms.append(TermChange(len(self.terms) + 1, self._tick(), duty, *was, holder, term)._replace(**overrides))

    def effect(self, row: Row, **overrides: Any) -> None:
        self.effects.append(EffectRow("effects", row.n, row.id, row.fence)._replace(**overrides))

    def order(self, n: int, job: str | None = None) -> None:
        self.effects.append(EffectRow("orders", n, job, None))

    def entry(self, request: str, subject: str, **overrides: Any) -> None:
        """Of the audit log."""
        line = AuditLine(
            len(self.audit) + 1, self._tick(), request, "requested", "campaign-client-0", "cancel_job", subject, None
        )
        self.audit.append(line._replace(**overrides))

    # Schedules

    def schedule(self, name: str = "s", since: float = BEGAN, **definition: Any) -> None:
        """Every minute by default."""
        defaults = {"kind": "quick", "cron": None, "every": 60.0, "timezone": "UTC", "overlap": "allow", "catch_up": "all"}
        defaults |= {"catch_up_limit": 100, "paused": False, "retired": False, "was_since": None, "since": since}
        self.schedules.append(
            SeenScheduleChange(seq=len(self.schedules) + 1, at=self._tick(), name=name, **defaults | definition)
        )

    def record_until(self, since: float | None, name: str = "s", **overrides: Any) -> None:
        """All planned times up to `since` are recorded."""
        before = next(plan for plan in reversed(self.schedules) if plan.name == name)
        after = before._replace(seq=len(self.schedules) + 1, at=self._tick(), was_since=before.since, since=since)
        self.schedules.append(after._replace(**overrides))

    def tick(self, planned: float, outcome: str | None = "enqueued", name: str = "s", **overrides: Any) -> TickChange:
        """Does not enqueue its job."""
        number = len(self.ticks) + 1
        job = overrides.pop("job", f"tick-{number}" if outcome == "enqueued" else None)
        at = self._tick()
        tick = TickChange(number, at, at, number, name, planned, None, 1, None, outcome, job, None)
        self.ticks.append(tick._replace(**overrides))
        return self.ticks[-1]

    def enqueue_tick(self, planned: float, name: str = "s", **overrides: Any) -> Row:
        """Records a tick and enqueues its job."""
        tick = self.tick(planned, name=name, **overrides)
        assert tick.job is not None
        kind = next(plan.kind for plan in self.schedules if plan.name == name)
        return self.insert(tick.job, None, kind)

    # The end

    def set_final(self, row: Row, **overrides: Any) -> None:
        self.final[row.id] = final_of(row)._replace(**overrides)

    def ledger(self, folder: Path) -> Ledger:
        ledger = Ledger(folder)
        ledger.write_campaign(self.campaign)
        final = {row.id: final_of(row) for row in self.rows.values() if row.relation and row.id not in self.lost}
        _write(ledger, "calls-0.jsonl", self.calls)
        _write(ledger, "faults.jsonl", self.faults)
        _write(ledger, "moves.jsonl.gz", self.moves)
        _write(ledger, "steps.jsonl.gz", self.steps)
        _write(ledger, "values-1.jsonl", self.values)
        _write(ledger, "terms.jsonl", self.terms)
        _write(ledger, "workers.jsonl", self.workers)
        _write(ledger, "limits.jsonl", self.limits)
        _write(ledger, "plans.jsonl", self.schedules)
        _write(ledger, "ticks.jsonl", self.ticks)
        _write(ledger, "final.jsonl.gz", (final | self.final).values())
        _write(ledger, "effects.jsonl", self.effects)
        _write(ledger, "links.jsonl", self.links)
        _write(ledger, "audit.jsonl", self.audit)
        for run in self.runs:
            _write(ledger, f"runs-{run.pid}-{run.worker}.jsonl", [run])
        return ledger

    def check(self, folder: Path) -> CheckerVerdict:
        return check(self.ledger(folder))

    def broken(self, folder: Path) -> list[str]:
        """The numbers of the broken invariants."""
        return [invariant.number for invariant, found in self.check(folder).totals.items() if found]

    def _tick(self) -> float:
        self.now += TICK
        return self.now

    def _note(self, row: Row, was: str | None, was_claim: str | None) -> None:
        self.moves.append(_move(row, len(self.moves) + 1, self._tick(), was, was_claim))


def _move(row: Row, seq: int, at: float, was: str | None, was_claim: str | None) -> Move:
    # As the recorder does: request and key are recorded for a new row, the output in history.
    new = was is None
    return Move(
        seq, at, row.relation or "jobs", row.id, was, row.state, row.fence, was_claim, row.claim, row.worker, row.attempt,
        row.max_attempts, row.crashes, row.position, row.queue, row.priority, row.kind, row.n if new else None,
        row.key if new else None, row.output, row.due if row.state in ("scheduled", "retry", "waiting") else None,
    )  # fmt: skip


def final_of(row: Row) -> FinalJob:
    return FinalJob(
        row.id, row.state, row.kind, row.fence, row.claim, row.worker, row.attempt, row.max_attempts, row.crashes, row.n, row.key,
        row.output, 1.0 if row.relation == "jobs" and row.claim else None,
    )  # fmt: skip


def _write(ledger: Ledger, name: str, lines: Iterable[tuple[Any, ...]]) -> None:
    with ledger.write(name) as file:
        file.writelines(as_line(line) for line in lines)
