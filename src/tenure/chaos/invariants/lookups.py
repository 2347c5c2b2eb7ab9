"""What the record shows of clients, schedules, workers and faults, indexed for the rules."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from sys import intern
from typing import NamedTuple

from tenure.chaos.ledger import ClientCall, Fault
from tenure.chaos.recorded_changes import SeenScheduleChange, TickChange, WorkerChange
from tenure.model.schedules import Schedule

# Time spans in which faults could delay or undo work

FAILOVERS = frozenset({"failover"})
CRASHES = FAILOVERS | {"server_stop", "server_kill"}
OUTAGES = CRASHES | {"disk_full"}
LOCKS = frozenset({"lock_jobs", "lock_core"})

RECOVERY: Mapping[str, float] = {
    "failover": 8.0, "server_stop": 5.0, "server_kill": 5.0, "disk_full": 3.0, "crowd": 5.0,
    "lock_jobs": 2.0, "lock_core": 5.0, "lose_partition": 2.0,
    "end_sessions": 3.0, "lose_answer": 3.0, "cut": 3.0, "silence": 6.0, "slow": 2.0, "kill_pooler": 3.0,
    "stop_supervisor": 2.0, "move_clock": 3.0,
}  # fmt: skip
"""Faults that may delay jobs whose holder they do not hit, and the seconds until the system has recovered from them: connections
are opened again, and what was refused is repeated. Faults that are missing here delay only the jobs of the worker they hit."""

EDGE_RECOVERY: Mapping[str, float] = {"hostile_settings": 4.0}
"""Faults that end all sessions when they begin and when they end, and delay nothing in between."""

REFUSALS = frozenset({"refuse_rows"})
REFUSAL_RECOVERY = 120.0
"""Seconds after which a refused row has been tried again: by its worker after 30 s, by other leaders after the next
handovers."""

CONTACT_RECOVERY = 12.0
"""Seconds after a fault of the server or the network until workers can be condemned again: that needs ten seconds of unbroken
contact with PostgreSQL."""


class Windows:
    """Merged time spans. Faults that could not be done count as well: they may have been done in part."""

    def __init__(self, spans: Iterable[tuple[float, float]]) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []
        for began, ended in sorted(spans):
            if self._ends and began <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], ended)
            else:
                self._begins.append(began)
                self._ends.append(ended)
        self._before = [0.0]
        """For each span, the total length of the spans before it."""
        for began, ended in zip(self._begins, self._ends, strict=True):
            self._before.append(self._before[-1] + ended - began)

    def overlap(self, begin: float, end: float) -> bool:
        """Whether any span overlaps this one."""
        index = bisect_left(self._ends, begin)
        return index < len(self._ends) and self._begins[index] <= end

    def seconds_outside(self, begin: float, end: float) -> float:
        """Seconds between these times that are outside all spans."""
        return max(0.0, end - begin - (self._seconds_before(end) - self._seconds_before(begin)))

    def _seconds_before(self, at: float) -> float:
        index = bisect_right(self._begins, at)
        if not index:
            return 0.0
        return self._before[index - 1] + min(at, self._ends[index - 1]) - self._begins[index - 1]


def fault_windows(faults: Iterable[Fault], kinds: Collection[str], after: float = 0.0) -> Windows:
    """The spans of faults of these kinds, each extended by `after` seconds."""
    return Windows((fault.began, fault.ended + after) for fault in faults if fault.kind in kinds)


def disturbed_windows(faults: Iterable[Fault], at_least: float = 0.0) -> Windows:
    """The spans in which faults may have delayed work, including the time to recover from them."""
    return Windows(_disturbed(faults, at_least))


def _disturbed(faults: Iterable[Fault], at_least: float) -> Iterator[tuple[float, float]]:
    for fault in faults:
        if fault.kind in RECOVERY:
            yield fault.began, fault.ended + max(at_least, RECOVERY[fault.kind])
        elif fault.kind in EDGE_RECOVERY:
            recovery = max(at_least, EDGE_RECOVERY[fault.kind])
            yield fault.began, fault.began + recovery
            yield fault.ended - EDGE_RECOVERY[fault.kind], fault.ended + recovery


ANSWERS = frozenset({"ok", "refused", "unknown"})
VERBS_OF_ONE_JOB = frozenset({"cancel", "delete", "retry", "replay", "result"})

LARGEST_GAP = 2.0
"""Seconds between two lines of a process that still count as one span in which it works. In a longer gap it may be idle, blocked
by a handler, or dead: the record does not show which."""


# Clients


class AnsweredRequest(NamedTuple):
    kind: str
    key: str | None
    answer: str
    job: str | None
    """The id of the job in the answer."""
    existed: bool
    began: float
    ended: float


class AcceptedJob(NamedTuple):
    """A job whose id was returned to a client, and the time span of that call."""

    job: str
    began: float
    ended: float


class SentEvent(NamedTuple):
    """An event whose sender was answered, and the time span of the first call that was."""

    began: float
    ended: float


class CallLookup:
    """What clients asked for and how they were answered, by request and by job."""

    def __init__(self, calls: Iterable[ClientCall]) -> None:
        self.count = 0
        self.requests: dict[int, AnsweredRequest] = {}
        self.by_job: dict[str, list[ClientCall]] = {}
        self.retried: dict[str, str] = {}
        """By the id of a job that a retry of a finished job created: the id of the finished job."""
        self.unanswered_retries: Counter[str] = Counter()
        self.deleted: set[str] = set()
        """Jobs that a client asked to delete, with any answer except a refusal, which means that nothing was done."""
        self.canceled: set[str] = set()
        self.sent: dict[str, SentEvent] = {}
        """By the key of the event."""
        self.repeated_numbers: list[int] = []
        self.malformed: list[str] = []
        for call in calls:
            self._add(call)

    def accepted(self) -> Iterator[AcceptedJob]:
        """The jobs whose ids clients received. A job may come several times."""
        for request in self.requests.values():
            if request.job is not None:
                yield AcceptedJob(request.job, request.began, request.ended)
        for calls in self.by_job.values():
            for call in calls:
                if call.verb in ("retry", "replay") and call.answer == "ok" and isinstance(call.reply, str):
                    yield AcceptedJob(call.reply, call.began, call.ended)

    def _add(self, call: ClientCall) -> None:
        self.count += 1
        if call.answer not in ANSWERS:
            self.malformed.append(f"a call of {call.verb} has the unknown answer {call.answer!r}")
        elif call.verb == "enqueue":
            self._add_requests(call)
        elif call.verb in VERBS_OF_ONE_JOB and call.job is not None:
            self._add_call_of(call.job, call)
        elif call.verb == "emit":
            if call.answer == "ok":
                self.sent.setdefault(str(call.reply), SentEvent(call.began, call.ended))
        else:
            self.malformed.append(f"a call of {call.verb} has an unknown verb or no job")

    def _add_requests(self, call: ClientCall) -> None:
        answered = call.answer == "ok"
        if answered and not len(call.requests) == len(call.ids) == len(call.existed):
            self.malformed.append(f"an enqueue of {len(call.requests)} jobs was answered with {len(call.ids)} ids")
            answered = False
        for index, request in enumerate(call.requests):
            if request.n in self.requests:
                self.repeated_numbers.append(request.n)
                continue
            job, existed = (call.ids[index], call.existed[index]) if answered else (None, False)
            kind, answer = intern(request.kind), intern(call.answer)
            self.requests[request.n] = AnsweredRequest(kind, request.key, answer, job, existed, call.began, call.ended)

    def _add_call_of(self, job: str, call: ClientCall) -> None:
        self.by_job.setdefault(job, []).append(call)
        if call.answer == "refused":
            return
        if call.verb == "delete":
            self.deleted.add(job)
        elif call.verb == "cancel":
            self.canceled.add(job)
        elif call.verb == "retry" and call.answer == "unknown":
            self.unanswered_retries[job] += 1
        elif call.verb == "retry" and isinstance(call.reply, str) and call.reply != job:
            self.retried[call.reply] = job


# Schedules


class ScheduleLookup:
    """The definitions of schedules, and the records of their planned times. All are kept: they grow by a few lines a second."""

    def __init__(self, changes: Iterable[SeenScheduleChange], ticks: Iterable[TickChange]) -> None:
        self.changes: dict[str, list[SeenScheduleChange]] = {}
        self.ticks: dict[str, list[TickChange]] = {}
        self.tick_of_job: dict[str, TickChange] = {}
        """The first tick of each job, should there be two."""
        self.count = 0
        for change in changes:
            self.changes.setdefault(change.name, []).append(change)
        for tick in ticks:
            self.count += tick.was is None
            self.ticks.setdefault(tick.schedule, []).append(tick)
            if tick.job is not None:
                self.tick_of_job.setdefault(tick.job, tick)


class PlannedTimes:
    """The planned times of a schedule in (since, until], according to its definition."""

    def __init__(self, definition: SeenScheduleChange, since: float, until: float) -> None:
        schedule = Schedule(
            name=definition.name,
            kind=definition.kind,
            cron=definition.cron,
            every=None if definition.every is None else timedelta(seconds=definition.every),
            timezone=definition.timezone,
        )
        end = datetime.fromtimestamp(until, UTC)
        planned = schedule.planned(datetime.fromtimestamp(since, UTC))
        self.all = [time.timestamp() for time in takewhile(lambda time: time <= end, planned)]

    def within(self, first: float, last: float) -> range:
        """The indexes of the times in [first, last]."""
        return range(bisect_left(self.all, first), bisect_right(self.all, last))

    def count_after(self, at: float, until: float) -> int:
        """How many times are in (at, until]."""
        return bisect_right(self.all, until) - bisect_right(self.all, at)


# Workers


class WorkerLookup:
    """When each worker was registered, condemned and removed, and when its process was stopped."""

    def __init__(self, changes: Iterable[WorkerChange], faults: Iterable[Fault]) -> None:
        self._pids: dict[str, int] = {}
        self._ends: dict[str, float] = {}
        self._removals: dict[str, float] = {}
        for change in changes:
            self._pids.setdefault(change.worker, change.pid)
            if change.what == "condemned":
                self._ends.setdefault(change.worker, change.at)
            elif change.what == "removed":
                self._ends.setdefault(change.worker, change.at)
                self._removals.setdefault(change.worker, change.at)
        spans: dict[int, list[tuple[float, float]]] = {}
        for fault in faults:
            for pid in fault.stopped:
                spans.setdefault(pid, []).append((fault.began, fault.ended))
        self._stops = {pid: Windows(stops) for pid, stops in spans.items()}
        self._active: dict[str, list[list[float]]] = {}

    def add_handler_line(self, worker: str, at: float) -> None:
        """A handler wrote a line; the lines of one process come in the order of time."""
        spans = self._active.get(worker)
        if spans is None:
            self._active[worker] = [[at, at]]
        elif spans[-1][1] <= at <= spans[-1][1] + LARGEST_GAP:
            spans[-1][1] = at
        elif at > spans[-1][1]:
            spans.append([at, at])

    def active_spans(self, worker: str | None, begin: float, end: float) -> Iterator[tuple[float, float]]:
        """The spans between these times in which its process is known to run handlers."""
        spans = self._active.get(worker or "", [])
        for index in range(bisect_left(spans, begin, key=_end_of), len(spans)):
            first, last = spans[index]
            if first >= end:
                return
            yield max(first, begin), min(last, end)

    @property
    def recorded(self) -> bool:
        return bool(self._pids)

    def removed_at(self, worker: str | None) -> float:
        """When its row was removed. Infinity: it was not."""
        return self._removals.get(worker or "", float("inf"))

    def ended_at(self, worker: str | None) -> float:
        """When it was condemned, or when its row was removed. Infinity: neither."""
        return self._ends.get(worker or "", float("inf"))

    def seconds_stopped(self, worker: str | None, begin: float, end: float) -> float:
        """Seconds between these times in which its process was stopped."""
        span = max(0.0, end - begin)
        stops = self._stops.get(self._pids.get(worker or "", 0))
        return 0.0 if stops is None else span - stops.seconds_outside(begin, end)


def _end_of(span: list[float]) -> float:
    return span[1]
