"""Ledgers made by hand: a campaign in which everything goes as it should, and each test says what does not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from tenure.chaos.checker import check
from tenure.chaos.ledger import (
    Call,
    Course,
    Effect,
    Fault,
    Final,
    Ledger,
    LimitChange,
    Move,
    Offer,
    Plan,
    Run,
    Term,
    Tick,
    WorkerChange,
    as_line,
)  # fmt: skip
from tenure.chaos.verdict import Verdict

BEGAN = 1_000_000.0
TICK = 0.01  # between two things that happen


@dataclass
class Row:
    """A job as it stands."""

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
class Book:
    """Does what Tenure does, and notes it as the recorder would. Whatever is given beside wins: that is how tests lie."""

    course: Course = field(
        default_factory=lambda: Course(
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
    calls: list[Call] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    workers: list[WorkerChange] = field(default_factory=list)
    limits: list[LimitChange] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)
    final: dict[str, Final] = field(default_factory=dict)
    """Set by tests that want a job to stand otherwise than it was left."""
    lost: set[str] = field(default_factory=set)
    now: float = BEGAN

    def __post_init__(self) -> None:
        self._numbers = count(1)
        self._positions = count(1)
        self._claims = count(1)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def set(self, **course: Any) -> None:
        self.course = replace(self.course, **course)

    # What clients ask

    def call(self, verb: str, answer: str = "ok", **more: Any) -> None:
        began = self._tick()
        self.calls.append(Call(verb, began, self._tick(), answer, **more))

    def offer(self, kind: str = "quick", key: str | None = None, answer: str = "ok", **told: Any) -> int:
        """Only the call; gives its number."""
        n = told.pop("n", None) or next(self._numbers)
        ids = (told["job"],) if answer == "ok" else ()
        self.call("enqueue", answer, offers=(Offer(n, kind, key),), ids=ids, existed=(told.get("existed", False),) * len(ids))
        return n

    def enqueue(self, kind: str = "quick", key: str | None = None, *, answer: str = "ok", **row: Any) -> Row:
        number = len(self.rows) + 1
        job = row.pop("id", f"job-{number}")
        n = self.offer(kind, key, answer, job=job, n=row.pop("n", None))
        return self.born(job, n, kind, key, **row)

    def cancel(self, row: Row, *, told: bool = True, answer: str = "ok") -> None:
        self.call("cancel", answer, job=row.id, told=told)
        self.leave(row)
        self.settle(row, "canceled", claim=None)

    def delete(self, row: Row, *, told: bool = True, answer: str = "ok") -> None:
        self.call("delete", answer, job=row.id, told=told)
        self.leave(row)

    def result(self, row: Row, state: str | None = None, output: Any = ...) -> None:
        self.call("result", job=row.id, told=[state or row.state, row.output if output is ... else output])

    def retry_finished(self, row: Row, *, answer: str = "ok", **made: Any) -> Row:
        job = f"job-{len(self.rows) + 1}"
        self.call("retry", answer, job=row.id, told=job if answer == "ok" else None)
        return self.born(job, row.n, row.kind, f"retry of {row.id}", **made)

    def replay(self, row: Row, **lies: Any) -> None:
        self.call("replay", job=row.id, told=row.id)
        self.move(row, **{"state": "pending", "attempt": 0, "crashes": 0, "position": next(self._positions)} | lies)

    # What becomes of a job

    def born(self, job: str, n: int | None, kind: str = "quick", key: str | None = None, **more: Any) -> Row:
        queue, priority = more.pop("queue", "default"), more.pop("priority", 50)
        row = Row(job, n, kind, key, queue, priority, **more)
        if row.state == "pending" and not row.position:
            row.position = next(self._positions)
        self.rows[job] = row
        self._note(row, None, None)
        return row

    def claim(self, row: Row, worker: str = "w1", **lies: Any) -> None:
        granted = {"state": "running", "claim": f"c{next(self._claims)}", "worker": worker}
        self.move(row, **granted | {"fence": row.fence + 1, "attempt": row.attempt + 1} | lies)

    def start(self, row: Row, **lies: Any) -> None:
        self.run("started", row, **lies)

    def run(self, what: str, row: Row, **lies: Any) -> None:
        worker = lies.pop("worker", row.worker)
        run = Run(what, self._tick(), row.id, row.n, row.fence, row.attempt, worker, 100 + int(worker[1:]))
        self.runs.append(run._replace(**lies))

    def complete(self, row: Row, **lies: Any) -> None:
        self.run("returned", row)
        self.leave(row)
        self.settle(row, "completed", **{"output": self.made(row)} | lies)

    def finish(self, row: Row, state: str = "completed", worker: str = "w1") -> Row:
        """From pending to its end, without anything on the way."""
        self.claim(row, worker)
        self.start(row)
        if state == "completed":
            self.complete(row)
        else:
            self.run("raised", row)
            self.leave(row)
            self.settle(row, state)
        return row

    def done(self, kind: str = "quick", **row: Any) -> Row:
        return self.finish(self.enqueue(kind, **row))

    def fail(self, row: Row, **lies: Any) -> None:
        """An attempt is spent; another comes, or none."""
        self.run("raised", row)
        over = row.attempt >= row.max_attempts
        self.release(row, **{"state": "dead_letter" if over else "retry"} | lies)

    def snooze(self, row: Row, **lies: Any) -> None:
        self.run("raised", row)
        self.release(row, **{"state": "scheduled", "attempt": row.attempt - 1} | lies)

    def hand_back(self, row: Row, **lies: Any) -> None:
        self.release(row, **{"state": "pending", "attempt": row.attempt - 1} | lies)

    def crash(self, row: Row, **lies: Any) -> None:
        over = row.crashes + 1 >= self.course.max_crashes
        state = "dead_letter" if over else "pending"
        self.release(row, **{"state": state, "attempt": row.attempt - 1, "crashes": row.crashes + 1} | lies)

    def release(self, row: Row, **changes: Any) -> None:
        self.move(row, **{"claim": None, "worker": None} | changes)

    def promote(self, row: Row, **lies: Any) -> None:
        self.move(row, **{"state": "pending", "position": next(self._positions)} | lies)

    def move(self, row: Row, **changes: Any) -> None:
        was, was_claim = row.state, row.claim
        for name, value in changes.items():
            setattr(row, name, value)
        self._note(row, was, was_claim)

    def leave(self, row: Row) -> None:
        """From wherever it stands."""
        seq, at = len(self.moves) + 1, self._tick()
        gone = _move(row, seq, at, row.state, row.claim)
        self.moves.append(gone._replace(state=None, claim=None, position=0, n=None, key=None, output=None))
        row.relation = None

    def settle(self, row: Row, state: str, **lies: Any) -> None:
        row.relation, row.state, row.position = "history", state, 0
        for name, value in lies.items():
            setattr(row, name, value)
        self._note(row, None, None)

    def made(self, row: Row, **lies: Any) -> dict[str, Any]:
        return {"n": row.n, "fence": row.fence, "worker": row.worker} | lies

    # What happens beside

    def fault(self, kind: str, seconds: float = 0.0, **lies: Any) -> None:
        began = self._tick()
        self.wait(seconds)
        self.faults.append(Fault(kind, began, self.now, "somebody", done=True)._replace(**lies))

    def worker(self, what: str, worker: str = "w1", **lies: Any) -> None:
        """`what`: registered, condemned, removed."""
        change = WorkerChange(len(self.workers) + 1, self._tick(), worker, 100 + int(worker[1:]), what, None)
        self.workers.append(change._replace(**lies))

    def limit(self, kind: str, concurrency: int | None, *, rate: bool = False) -> None:
        self.limits.append(LimitChange(len(self.limits) + 1, self._tick(), f"kind:{kind}", concurrency, rate))

    def lead(self, holder: str, term: int, duty: str = "reaper", **lies: Any) -> None:
        before = next((known for known in reversed(self.terms) if known.duty == duty), None)
        was = (None, None) if before is None else (before.holder, before.term)
        self.terms.append(Term(len(self.terms) + 1, self._tick(), duty, *was, holder, term)._replace(**lies))

    def effect(self, row: Row, **lies: Any) -> None:
        self.effects.append(Effect("effects", row.n, row.id, row.fence)._replace(**lies))

    def order(self, n: int, job: str | None = None) -> None:
        self.effects.append(Effect("orders", n, job, None))

    # Schedules

    def plan(self, name: str = "s", since: float = BEGAN, **definition: Any) -> None:
        """By the minute, unless it is told otherwise."""
        told = {"kind": "quick", "cron": None, "every": 60.0, "timezone": "UTC", "overlap": "allow", "catch_up": "all"}
        told |= {"catch_up_limit": 100, "paused": False, "retired": False, "was_since": None, "since": since}
        self.plans.append(Plan(seq=len(self.plans) + 1, at=self._tick(), name=name, **told | definition))

    def pass_on(self, since: float | None, name: str = "s", **lies: Any) -> None:
        """All times of the schedule up to then are recorded."""
        before = next(plan for plan in reversed(self.plans) if plan.name == name)
        after = before._replace(seq=len(self.plans) + 1, at=self._tick(), was_since=before.since, since=since)
        self.plans.append(after._replace(**lies))

    def tick(self, planned: float, outcome: str | None = "enqueued", name: str = "s", **lies: Any) -> Tick:
        """Its job is only named."""
        number = len(self.ticks) + 1
        job = lies.pop("job", f"tick-{number}" if outcome == "enqueued" else None)
        at = self._tick()
        told = Tick(number, at, at, number, name, planned, None, 1, None, outcome, job, None)
        self.ticks.append(told._replace(**lies))
        return self.ticks[-1]

    def hand_in(self, planned: float, name: str = "s", **lies: Any) -> Row:
        """Recorded, with its job."""
        tick = self.tick(planned, name=name, **lies)
        assert tick.job is not None
        kind = next(plan.kind for plan in self.plans if plan.name == name)
        return self.born(tick.job, None, kind)

    # The end

    def stands(self, row: Row, **lies: Any) -> None:
        self.final[row.id] = final_of(row)._replace(**lies)

    def ledger(self, folder: Path) -> Ledger:
        ledger = Ledger(folder)
        ledger.keep_course(self.course)
        standing = {row.id: final_of(row) for row in self.rows.values() if row.relation and row.id not in self.lost}
        _write(ledger, "calls-0.jsonl", self.calls)
        _write(ledger, "faults.jsonl", self.faults)
        _write(ledger, "moves.jsonl.gz", self.moves)
        _write(ledger, "terms.jsonl", self.terms)
        _write(ledger, "workers.jsonl", self.workers)
        _write(ledger, "limits.jsonl", self.limits)
        _write(ledger, "plans.jsonl", self.plans)
        _write(ledger, "ticks.jsonl", self.ticks)
        _write(ledger, "final.jsonl.gz", (standing | self.final).values())
        _write(ledger, "effects.jsonl", self.effects)
        for run in self.runs:
            _write(ledger, f"runs-{run.pid}-{run.worker}.jsonl", [run])
        return ledger

    def judge(self, folder: Path) -> Verdict:
        return check(self.ledger(folder))

    def broken(self, folder: Path) -> list[str]:
        """The numbers of the invariants that did not hold."""
        return [invariant.number for invariant, found in self.judge(folder).totals.items() if found]

    def _tick(self) -> float:
        self.now += TICK
        return self.now

    def _note(self, row: Row, was: str | None, was_claim: str | None) -> None:
        self.moves.append(_move(row, len(self.moves) + 1, self._tick(), was, was_claim))


def _move(row: Row, seq: int, at: float, was: str | None, was_claim: str | None) -> Move:
    # As the recorder does: what names the offer is noted where a row is new, and the output in history.
    new = was is None
    return Move(
        seq, at, row.relation or "jobs", row.id, was, row.state, row.fence, was_claim, row.claim, row.worker, row.attempt,
        row.max_attempts, row.crashes, row.position, row.queue, row.priority, row.kind, row.n if new else None,
        row.key if new else None, row.output, row.due if row.state in ("scheduled", "retry") else None,
    )  # fmt: skip


def final_of(row: Row) -> Final:
    return Final(
        row.id, row.state, row.kind, row.fence, row.claim, row.worker, row.attempt, row.max_attempts, row.crashes, row.n, row.key,
        row.output, 1.0 if row.relation == "jobs" and row.claim else None,
    )  # fmt: skip


def _write(ledger: Ledger, name: str, lines: Iterable[tuple[Any, ...]]) -> None:
    with ledger.write(name) as file:
        file.writelines(as_line(line) for line in lines)
