"""The record of a campaign, in one folder. The checker reads nothing else.

ledger.json     what was run: seed, lease, and when the campaign began, when the faults ended, and when it ended
calls-*.jsonl   what clients asked for and how they were answered, one file per client process
runs-*.jsonl    what handlers wrote about their own runs, one file per process, including runs whose outcome was refused
faults.jsonl    what was done to the system, and when
values-*.jsonl  what steps of workflows made and what their workflows saw, one file per process
moves.jsonl.gz  every change of a job's row, written by triggers inside the changing transaction
steps.jsonl.gz  every change of a step of a workflow, written the same way
terms.jsonl     every change of a leader's row, written the same way
workers.jsonl   every worker that was registered, condemned or removed, written the same way
limits.jsonl    every change of a limit, written the same way
plans.jsonl     every change of a schedule's row, written the same way
ticks.jsonl     every change of the record of a planned time, written the same way
final.jsonl.gz  all jobs at the end
links.jsonl     links of chains and jobs that wait for them, at the end
effects.jsonl   rows that handlers and callers wrote in one transaction with a job
audit.jsonl     the audit log of the web server at the end
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from tenure.chaos.recorded_changes import LimitChange, Move, SeenScheduleChange, StepChange, TermChange, TickChange, WorkerChange


@dataclass(frozen=True, kw_only=True)
class CampaignRecord:
    """What was run. Times are seconds since the epoch, on the clock of PostgreSQL's host."""

    seed: int
    lease: float
    began: float
    healed: float
    """From here on, no fault is active."""
    ended: float
    drained: bool
    """No work was left when the campaign ended."""
    concurrency: int
    max_crashes: int
    late: float
    """Seconds for which newer jobs may be claimed before an older one that any worker could have claimed."""
    schedules: tuple[str, ...] = ()
    """The schedules that the workers' code declares."""
    free_slots: int = 0
    """Enough for at least this many jobs: if no more are waiting, each can be claimed. 0: unknown."""
    repaired: bool = True
    """At the end, today had its partition of history, with all jobs that finished today."""
    longest: float = 10.0
    """Seconds within which every handler ends, unless its process is stopped."""


class JobRequest(NamedTuple):
    """One job as a client requested it. `n` is unique and part of the input, so that a row can be traced to its request."""

    n: int
    kind: str
    key: str | None


class ClientCall(NamedTuple):
    """What a client asked for, and the answer.

    verb      enqueue, cancel, delete, retry, replay, result, emit
    answer    ok, refused (nothing was done), unknown (the connection broke: it may or may not have been done)
    requests  enqueue: the requested jobs
    ids       enqueue: the ids of the jobs, in the same order, if the answer is ok
    existed   enqueue: whether the job existed already, under its key
    job       all other verbs: which job
    reply     cancel, delete: whether it was done. retry, replay: the id of the job that runs now.
              result: [state, output] as the client received them. emit: the key of the event
    actor     calls of the web server: the name of the client's token
    """

    verb: str
    began: float
    ended: float
    answer: str
    requests: tuple[JobRequest, ...] = ()
    ids: tuple[str, ...] = ()
    existed: tuple[bool, ...] = ()
    job: str | None = None
    reply: Any = None
    actor: str = ""


class HandlerLine(NamedTuple):
    """Written by a handler about its own run. `what`: started, returned, raised, aborted."""

    what: str
    at: float
    job: str
    n: int | None
    fence: int
    attempt: int
    worker: str
    pid: int


class ValueLine(NamedTuple):
    """Written about one step of a workflow: by the step itself (`ran`), or by the workflow that received its value (`saw`).

    value   what the step made or the workflow saw; it shows which run made it
    needs   ran: the step whose value it was given, or empty
    given   ran: that value
    """

    what: str
    at: float
    job: str
    fence: int
    worker: str
    step: str
    value: str
    needs: str = ""
    given: str = ""


class Fault(NamedTuple):
    kind: str
    began: float
    ended: float
    target: str
    done: bool
    """False: it could not be done, and `detail` is the reason."""
    detail: str = ""
    stopped: tuple[int, ...] = ()
    """Processes that were stopped during that time."""


class FinalJob(NamedTuple):
    """A job at the end of the campaign."""

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
    """Seconds left of its holder's lease; None if no worker holds it."""


class FinalLink(NamedTuple):
    """A link of a chain, or a job that waits for one, at the end of the campaign."""

    job: str
    chain: str
    kind: str
    state: str
    next: str | None
    """The next link of the chain."""
    parent: str | None
    missing: int | None
    """How many chains it still waits for; None: it does not wait."""


class EffectRow(NamedTuple):
    """`relation` effects: written by a handler inside `ctx.transaction()`. orders: by a caller, together with enqueue. bookings:
    by a step of a workflow, in the transaction that stores the step."""

    relation: str
    n: int
    job: str | None
    fence: int | None


class AuditLine(NamedTuple):
    """An entry of the audit log. `phase`: requested, before anything is changed; finished, with the status of the answer."""

    seq: int
    at: float
    request: str
    phase: str
    actor: str
    action: str
    subject: str | None
    status: int | None


LINES_AT_ONCE = 256
"""Lines that are parsed together: one call of the parser costs as much as a line."""


class Ledger:
    """Reads and writes the folder. A line is a JSON array with the fields of one of the classes above, in their order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def campaign(self) -> CampaignRecord:
        kept = json.loads((self.folder / "ledger.json").read_text("utf-8"))
        known = {field.name: kept[field.name] for field in fields(CampaignRecord) if field.name in kept}
        return CampaignRecord(**known | {"schedules": tuple(kept.get("schedules", ()))})

    def write_campaign(self, campaign: CampaignRecord) -> None:
        (self.folder / "ledger.json").write_text(json.dumps(asdict(campaign), indent=2) + "\n", "utf-8")

    def calls(self) -> Iterator[ClientCall]:
        """Client by client."""
        for line in self._all_lines("calls-*.jsonl"):
            call = ClientCall(*line)
            yield call._replace(requests=tuple(JobRequest(*request) for request in call.requests))

    def runs(self) -> Iterator[HandlerLine]:
        """Process by process; within one, in order."""
        for path in sorted(self.folder.glob("runs-*.jsonl")):
            yield from map(HandlerLine._make, self._lines(path.name))

    def values(self) -> Iterator[ValueLine]:
        """Process by process; within one, in order."""
        return map(ValueLine._make, self._all_lines("values-*.jsonl"))

    def steps(self) -> Iterator[StepChange]:
        return map(StepChange._make, self._lines("steps.jsonl.gz"))

    def faults(self) -> Iterator[Fault]:
        return map(Fault._make, self._lines("faults.jsonl"))

    def moves(self) -> Iterator[Move]:
        return map(Move._make, self._lines("moves.jsonl.gz"))

    def terms(self) -> Iterator[TermChange]:
        return map(TermChange._make, self._lines("terms.jsonl"))

    def workers(self) -> Iterator[WorkerChange]:
        return map(WorkerChange._make, self._lines("workers.jsonl"))

    def limits(self) -> Iterator[LimitChange]:
        return map(LimitChange._make, self._lines("limits.jsonl"))

    def schedules(self) -> Iterator[SeenScheduleChange]:
        return map(SeenScheduleChange._make, self._lines("plans.jsonl"))

    def ticks(self) -> Iterator[TickChange]:
        return map(TickChange._make, self._lines("ticks.jsonl"))

    def final(self) -> Iterator[FinalJob]:
        return map(FinalJob._make, self._lines("final.jsonl.gz"))

    def links(self) -> Iterator[FinalLink]:
        return map(FinalLink._make, self._lines("links.jsonl"))

    def effects(self) -> Iterator[EffectRow]:
        return map(EffectRow._make, self._lines("effects.jsonl"))

    def audit(self) -> Iterator[AuditLine]:
        return map(AuditLine._make, self._lines("audit.jsonl"))

    def write(self, name: str) -> IO[str]:
        """Opens a file for appending lines, each made by `as_line`."""
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
