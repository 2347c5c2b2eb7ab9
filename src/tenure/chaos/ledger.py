"""What a campaign records, one folder; the checker needs nothing else.

ledger.json     what was run: seed, lease, when it began, healed and ended
calls.jsonl     what clients asked for, and what they were told
runs-*.jsonl    what handlers saw of themselves, a file per process, also of runs whose outcome was refused
faults.jsonl    what was done to the system, and when
moves.jsonl.gz  every change of a job's row, written by triggers within the changing transaction
terms.jsonl     every change of a leader's row, likewise
workers.jsonl   every worker that was registered, condemned or removed, likewise
limits.jsonl    every change of a limit, likewise
plans.jsonl     every change of a schedule's row, likewise
ticks.jsonl     every change of what is recorded of a planned time, likewise
final.jsonl.gz  all jobs as they stood at the end
effects.jsonl   rows that handlers and callers wrote in one transaction with a job
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar


@dataclass(frozen=True, kw_only=True)
class Course:
    """What was run. Times are seconds since the epoch, of PostgreSQL's host."""

    seed: int
    lease: float
    began: float
    healed: float
    """No fault is at work from here on."""
    ended: float
    drained: bool
    """Nothing was left to do when the campaign ended."""
    concurrency: int
    max_crashes: int
    late: float
    """An older job that anybody could have taken may be passed over for so long."""
    schedules: tuple[str, ...] = ()
    """Those that the workers' code declares."""
    few: int = 0
    """As many jobs as the workers have free slots for, at least: if no more wait, each of them can be granted. 0: not known."""
    repaired: bool = True
    """At the end today had its partition of history, with all jobs that finished today."""
    longest: float = 10.0
    """Seconds in which every handler that is not stopped comes to its end."""


class Offer(NamedTuple):
    """One job as a client offered it. `n` is unique and stands in the input, so that a row can be traced to its offer."""

    n: int
    kind: str
    key: str | None


class Call(NamedTuple):
    """What a client asked for, and what it was told.

    verb     enqueue, cancel, delete, retry, replay, result
    answer   ok, refused (nothing was done), unknown (the connection broke: it may or may not have been done)
    offers   enqueue: what was offered; ids, in the same order, when the answer is ok; existed: met under its key
    job      the others: which job
    told     cancel, delete: whether it was done. retry, replay: the id of the job that runs now.
             result: [state, output] as the client saw them
    """

    verb: str
    began: float
    ended: float
    answer: str
    offers: tuple[Offer, ...] = ()
    ids: tuple[str, ...] = ()
    existed: tuple[bool, ...] = ()
    job: str | None = None
    told: Any = None


class Run(NamedTuple):
    """A line of a handler's own. `what`: started, returned, raised, aborted."""

    what: str
    at: float
    job: str
    n: int | None
    fence: int
    attempt: int
    worker: str
    pid: int


class Fault(NamedTuple):
    kind: str
    began: float
    ended: float
    target: str
    done: bool
    """False: it could not be done, `detail` says why."""
    detail: str = ""
    stopped: tuple[int, ...] = ()
    """Processes that did not run in that time."""


class Move(NamedTuple):
    """A change of one row. Of one job they stand in the order in which they were committed.

    relation  jobs or history
    was       the state before, None for a new row
    state     the state after, None for a row that went
    claim     after the change: the claim that holds it, or in history, that settled it
    output    what history keeps as the job's output
    due       scheduled, retry: when it is to become pending
    """

    seq: int
    at: float
    relation: str
    job: str
    was: str | None
    state: str | None
    fence: int
    was_claim: str | None
    claim: str | None
    worker: str | None
    attempt: int
    max_attempts: int
    crashes: int
    position: int
    queue: str
    priority: int
    kind: str
    n: int | None
    key: str | None
    output: Any
    due: float | None = None


class WorkerChange(NamedTuple):
    """`what`: registered, condemned (it can neither claim nor renew from here on), removed."""

    seq: int
    at: float
    worker: str
    pid: int
    what: str
    how: str | None


class LimitChange(NamedTuple):
    """What holds after a change of a limit. No concurrency and no rate: nothing is limited by it."""

    seq: int
    at: float
    name: str
    concurrency: int | None
    rate: bool


class Term(NamedTuple):
    seq: int
    at: float
    duty: str
    was_holder: str | None
    was_term: int | None
    holder: str | None
    term: int | None


class Plan(NamedTuple):
    """A schedule's row after a change. `since`: all planned times up to here are recorded; None: the row is gone."""

    seq: int
    at: float
    name: str
    kind: str
    cron: str | None
    every: float | None
    timezone: str
    overlap: str
    catch_up: str
    catch_up_limit: int
    paused: bool
    retired: bool
    was_since: float | None
    since: float | None


class Tick(NamedTuple):
    """A change of what is recorded of a planned time, or of several in a row that were missed.

    began     when the transaction began that changed it, and at: when it did
    xact      which transaction that was: what is decided together is written together
    until     the last of those missed together, and times, how many these are
    was       the outcome before, None for a new row
    outcome   enqueued, skipped, queued, missed; None for a row that went
    by        who asked for a run that was not planned
    """

    seq: int
    began: float
    at: float
    xact: int
    schedule: str
    planned: float
    until: float | None
    times: int
    was: str | None
    outcome: str | None
    job: str | None
    by: str | None


class Final(NamedTuple):
    job: str
    state: str
    kind: str
    fence: int
    claim: str | None
    worker: str | None
    attempt: int
    max_attempts: int
    crashes: int
    n: int | None
    key: str | None
    output: Any
    lease_left: float | None
    """Seconds that its holder's lease still had; None where nobody holds it."""


class Effect(NamedTuple):
    """`relation` effects: a handler wrote it inside `ctx.transaction()`. orders: a caller, in one transaction with enqueue."""

    relation: str
    n: int
    job: str | None
    fence: int | None


Line = TypeVar("Line", bound=NamedTuple)

LINES_AT_ONCE = 256
"""Parsed together: one call of the parser costs as much as a line."""


class Ledger:
    """Reads and writes the folder. Lines are JSON arrays in the order of the fields above."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def course(self) -> Course:
        kept = json.loads((self.folder / "ledger.json").read_text("utf-8"))
        known = {field.name: kept[field.name] for field in fields(Course) if field.name in kept}
        return Course(**known | {"schedules": tuple(kept.get("schedules", ()))})

    def keep_course(self, course: Course) -> None:
        (self.folder / "ledger.json").write_text(json.dumps(asdict(course), indent=2) + "\n", "utf-8")

    def calls(self) -> Iterator[Call]:
        """Client by client."""
        for line in self._all_lines("calls-*.jsonl"):
            call = Call(*line)
            yield call._replace(offers=tuple(Offer(*offer) for offer in call.offers))

    def runs(self) -> Iterator[Run]:
        """Process by process; within one, in order."""
        for path in sorted(self.folder.glob("runs-*.jsonl")):
            yield from map(Run._make, self._lines(path.name))

    def faults(self) -> Iterator[Fault]:
        return map(Fault._make, self._lines("faults.jsonl"))

    def moves(self) -> Iterator[Move]:
        return map(Move._make, self._lines("moves.jsonl.gz"))

    def terms(self) -> Iterator[Term]:
        return map(Term._make, self._lines("terms.jsonl"))

    def workers(self) -> Iterator[WorkerChange]:
        return map(WorkerChange._make, self._lines("workers.jsonl"))

    def limits(self) -> Iterator[LimitChange]:
        return map(LimitChange._make, self._lines("limits.jsonl"))

    def plans(self) -> Iterator[Plan]:
        return map(Plan._make, self._lines("plans.jsonl"))

    def ticks(self) -> Iterator[Tick]:
        return map(Tick._make, self._lines("ticks.jsonl"))

    def final(self) -> Iterator[Final]:
        return map(Final._make, self._lines("final.jsonl.gz"))

    def effects(self) -> Iterator[Effect]:
        return map(Effect._make, self._lines("effects.jsonl"))

    def write(self, name: str) -> IO[str]:
        """Appends; whoever writes lines through it uses `as_line`."""
        path = self.folder / name
        return (
            gzip.open(path, "at", compresslevel=1, encoding="utf-8") if name.endswith(".gz") else path.open("a", encoding="utf-8")
        )

    def _all_lines(self, names: str) -> Iterator[list[Any]]:
        for path in sorted(self.folder.glob(names)):
            yield from self._lines(path.name)

    def _lines(self, name: str) -> Iterator[list[Any]]:
        path = self.folder / name
        if not path.exists():
            return
        with gzip.open(path, "rt", encoding="utf-8") if name.endswith(".gz") else path.open(encoding="utf-8") as file:
            while lines := list(islice(file, LINES_AT_ONCE)):
                if not lines[-1].endswith("\n"):  # a killed process may leave half a line
                    lines.pop()
                yield from json.loads(f"[{','.join(lines)}]")


def as_line(values: tuple[Any, ...]) -> str:
    return json.dumps(values, separators=(",", ":")) + "\n"
