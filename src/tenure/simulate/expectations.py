"""How each job of the catalogue must end, computed from its kind and input alone, and compared with how it ended."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol
from uuid import UUID

from tenure import Priority, State, UnknownKind
from tenure.simulate.catalogue import JOBS
from tenure.simulate.draws import checksum, milliseconds, noise
from tenure.simulate.kinds_failing import MAX_ATTEMPTS

CRASHES_ALLOWED = 3
LONGEST_SHOWN = 80  # characters of a value in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    state: State
    attempts: int | None = 1
    """None where it depends on which process notices first."""
    output: Any = None
    children: int = 0
    error_contains: str | None = None
    crashes: int = 0
    """At least: a worker may crash for another reason."""


class Observed(Protocol):
    """A job as found in the database: `JobStatus`, or a row of `tenure.all_jobs`."""

    @property
    def id(self) -> UUID: ...
    @property
    def kind(self) -> str: ...
    @property
    def input(self) -> Any: ...
    @property
    def state(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def crashes(self) -> int: ...
    @property
    def output(self) -> Any: ...
    @property
    def error(self) -> str | None: ...
    @property
    def parent_id(self) -> UUID | None: ...


@dataclass(frozen=True, slots=True)
class Surprise:
    job_id: UUID
    kind: str
    problem: str

    def __str__(self) -> str:
        return f"{self.kind} {self.job_id} {self.problem}"


def expected(kind: str, input: Mapping[str, Any]) -> Expectation:  # noqa: A002 - the usual name
    """`input` is the job's JSON object. Arguments with defaults may be missing."""
    if kind not in _RULES:
        raise UnknownKind(kind, _RULES)
    return _RULES[kind](**{**_defaults(kind), **input})


def check(jobs: Iterable[Observed]) -> list[Surprise]:
    """How these jobs differ from what was expected. Pass all jobs, so that children can be counted."""
    seen = list(jobs)
    children = Counter(job.parent_id for job in seen if job.parent_id is not None)
    return [Surprise(job.id, job.kind, problem) for job in seen for problem in _differences(job, children[job.id])]


def _differences(job: Observed, children: int) -> Iterator[str]:
    try:
        wanted = expected(job.kind, job.input)
    except UnknownKind as error:
        yield f"is not of the catalogue: {error}"
        return
    if job.state != wanted.state:
        because = f" ({_last_line(job.error)})" if job.error else ""
        yield f"is {job.state}{because}, expected {wanted.state}"
        return
    if wanted.attempts is not None and job.attempt != wanted.attempts:
        yield f"took {job.attempt} attempts, expected {wanted.attempts}"
    if job.crashes < wanted.crashes:
        yield f"has {job.crashes} crashes, expected at least {wanted.crashes}"
    if wanted.output != job.output:
        yield f"returned {_shortened(repr(job.output))}, expected {_shortened(repr(wanted.output))}"
    if wanted.error_contains is not None and wanted.error_contains not in (job.error or ""):
        yield f"has the error {_last_line(job.error)!r}, expected one with {wanted.error_contains!r}"
    if children != wanted.children:
        yield f"has {children} children, expected {wanted.children}"


def _last_line(error: str | None) -> str:
    """In a traceback, the line with the exception."""
    return _shortened((error or "").strip().rpartition("\n")[2] or "none")


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}… ({len(text)} characters)"


def _defaults(kind: str) -> dict[str, Any]:
    parameters = inspect.signature(JOBS[kind]).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


# One rule for each kind, with the arguments of that kind.


def _completed(output: Any, *, attempts: int = 1, children: int = 0, crashes: int = 0) -> Expectation:
    return Expectation(state=State.COMPLETED, output=output, attempts=attempts, children=children, crashes=crashes)


def _returns_seed(seed: int, **_: Any) -> Expectation:
    return _completed(seed)


def _dead(error: str, *, attempts: int = 1) -> Expectation:
    return Expectation(state=State.DEAD_LETTER, error_contains=error, attempts=attempts)


def _timed_out(**_: Any) -> Expectation:
    return _dead("timed out")


def _quarantined(**_: Any) -> Expectation:
    return Expectation(state=State.DEAD_LETTER, error_contains="quarantined", attempts=None, crashes=CRASHES_ALLOWED)


def _flaky_until(seed: int, succeeds_at: int) -> Expectation:
    if succeeds_at > MAX_ATTEMPTS:
        return _dead(f"seed {seed}: not before attempt {succeeds_at}", attempts=MAX_ATTEMPTS)
    return _completed(seed, attempts=max(1, succeeds_at))


def _fan_out(children: int, **_: Any) -> Expectation:
    return _completed(children, children=children)


def _ladder(seed: int) -> Expectation:  # noqa: ARG001 - the arguments of the kind
    names = [priority.name.lower() for priority in sorted(Priority)]
    return _completed(names, children=len(names))


_RULES: dict[str, Callable[..., Expectation]] = {
    "quick": _returns_seed,
    "slow": lambda seed, most_ms: _completed(milliseconds(seed, "slow", least=50, most=most_ms)),
    "thread_nap": lambda seed, most_ms: _completed(milliseconds(seed, "thread_nap", least=20, most=most_ms)),
    "cpu": lambda seed, rounds: _completed(checksum(seed, rounds)),
    "blocks_loop": _returns_seed,
    "leaks_memory": lambda seed, megabytes: _completed(seed + megabytes * 256),
    "big_payload": lambda seed, text: _completed(f"{seed} {sha256(text.encode()).hexdigest()}"),
    "big_output": lambda seed, kib: _completed(noise(seed, kib)),
    "asks_database": _returns_seed,
    "progress_steps": _returns_seed,
    "progress_in_thread": _returns_seed,
    "progress_in_process": _returns_seed,
    "logs_lines": _returns_seed,
    "chained": lambda links, **_: _completed(links, children=int(links > 1)),
    "fan_out": _fan_out,
    "fan_out_in_thread": _fan_out,
    "fan_out_in_process": _fan_out,
    "ladder": _ladder,
    "rung": lambda seed, priority: _completed(f"{priority} {seed}"),
    "keyed": lambda seed, order: _completed(f"{order} {seed}"),
    "atomic_write": lambda seed: _completed(seed, attempts=2),
    "atomic_in_thread": lambda seed: _completed(seed, attempts=2),
    "atomic_child": lambda seed: _completed(seed, attempts=2, children=1),
    "flaky_until": _flaky_until,
    "always_failing": lambda seed: _dead(f"seed {seed} never works", attempts=3),
    "not_retryable": lambda seed: _dead(f"seed {seed} will never be right"),
    "picky_retry": lambda seed: _dead(f"seed {seed}: do not", attempts=2),
    "last_chance": lambda seed: _completed(f"seed {seed} the other way", attempts=3),
    "fails_for_good": lambda seed: Expectation(state=State.FAILED, error_contains=f"seed {seed} is beyond repair"),
    "cancels_itself": lambda seed: Expectation(state=State.CANCELED, error_contains=f"seed {seed} is not needed any more"),
    "snoozes": _returns_seed,
    "over_timeout": _timed_out,
    "over_timeout_in_thread": _timed_out,
    "raises_unprintable": lambda **_: _dead("Unprintable"),
    "raises_unpicklable": lambda seed: _dead(f"cannot leave its process, seed {seed}"),
    "exits": lambda seed: _dead(f"seed {seed} has had enough"),
    "returns_unserialisable": lambda **_: _dead("object has no JSON form"),
    "returns_wrong_type": lambda **_: _dead("does not fit its annotation"),
    "returns_too_much": lambda **_: _dead("at most"),
    "ignores_cancel": _timed_out,
    "ignores_cancel_in_thread": _timed_out,
    "ignores_cancel_in_process": _timed_out,
    "stuck_process": _timed_out,
    "crashes_its_process": _quarantined,
    "crashes_once": lambda seed: _completed(seed, crashes=1),
    "kills_its_worker": _quarantined,
    "forgets_heartbeat": _quarantined,
    "needs_heartbeat": _returns_seed,
}
