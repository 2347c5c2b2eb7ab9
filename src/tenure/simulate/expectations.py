"""What becomes of each job of the catalogue, foretold from its kind and input alone, and compared with what did."""

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
from tenure.simulate.kinds_failing import MOST_ATTEMPTS

CRASHES_ALLOWED = 3
LONGEST_SHOWN = 80  # characters of a value in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    state: State
    attempts: int | None = 1
    """None where it depends on who noticed first."""
    output: Any = None
    children: int = 0
    error_contains: str | None = None
    crashes: int = 0
    """At least so many: a worker may die for reasons of its own."""


class Observed(Protocol):
    """A job as it was found: `JobStatus`, or a row of `tenure.all_jobs`."""

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
    told: str

    def __str__(self) -> str:
        return f"{self.kind} {self.job_id} {self.told}"


def expected(kind: str, input: Mapping[str, Any]) -> Expectation:  # noqa: A002 - the word of jobs everywhere
    """`input` is the job's JSON object, in which arguments left to their defaults may be missing."""
    if kind not in _RULES:
        raise UnknownKind(kind, _RULES)
    return _RULES[kind](**{**_defaults(kind), **input})


def check(jobs: Iterable[Observed]) -> list[Surprise]:
    """How these jobs differ from what was to be expected. Give it all jobs, so that children can be counted."""
    seen = list(jobs)
    children = Counter(job.parent_id for job in seen if job.parent_id is not None)
    return [Surprise(job.id, job.kind, told) for job in seen for told in _differences(job, children[job.id])]


def _differences(job: Observed, children: int) -> Iterator[str]:
    try:
        wanted = expected(job.kind, job.input)
    except UnknownKind as error:
        yield f"was not to be expected at all: {error}"
        return
    if job.state != wanted.state:
        because = f" ({_last_line(job.error)})" if job.error else ""
        yield f"is {job.state}{because}, but should be {wanted.state}"
        return
    if wanted.attempts is not None and job.attempt != wanted.attempts:
        yield f"took {job.attempt} attempts, but should take {wanted.attempts}"
    if job.crashes < wanted.crashes:
        yield f"has {job.crashes} crashes, but should have {wanted.crashes}"
    if wanted.output != job.output:
        yield f"resulted in {_shortened(repr(job.output))}, but should result in {_shortened(repr(wanted.output))}"
    if wanted.error_contains is not None and wanted.error_contains not in (job.error or ""):
        yield f"says {_last_line(job.error)!r}, but should speak of {wanted.error_contains!r}"
    if children != wanted.children:
        yield f"has {children} children, but should have {wanted.children}"


def _last_line(error: str | None) -> str:
    """Of a traceback: the one that says what it was."""
    return _shortened((error or "").strip().rpartition("\n")[2] or "nothing")


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}… ({len(text)} characters)"


def _defaults(kind: str) -> dict[str, Any]:
    parameters = inspect.signature(JOBS[kind]).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


# The rules: one for each kind, with the kind's own arguments.


def _completed(output: Any, *, attempts: int = 1, children: int = 0, crashes: int = 0) -> Expectation:
    return Expectation(state=State.COMPLETED, output=output, attempts=attempts, children=children, crashes=crashes)


def _seed_back(seed: int, **_: Any) -> Expectation:
    return _completed(seed)


def _dead(error: str, *, attempts: int = 1) -> Expectation:
    return Expectation(state=State.DEAD_LETTER, error_contains=error, attempts=attempts)


def _timed_out(**_: Any) -> Expectation:
    return _dead("timed out")


def _quarantined(**_: Any) -> Expectation:
    return Expectation(state=State.DEAD_LETTER, error_contains="quarantined", attempts=None, crashes=CRASHES_ALLOWED)


def _flaky_until(seed: int, succeeds_at: int) -> Expectation:
    if succeeds_at > MOST_ATTEMPTS:
        return _dead(f"seed {seed}: not before attempt {succeeds_at}", attempts=MOST_ATTEMPTS)
    return _completed(seed, attempts=max(1, succeeds_at))


def _fan_out(children: int, **_: Any) -> Expectation:
    return _completed(children, children=children)


def _ladder(seed: int) -> Expectation:  # noqa: ARG001 - the kind's own arguments
    names = [priority.name.lower() for priority in sorted(Priority)]
    return _completed(names, children=len(names))


_RULES: dict[str, Callable[..., Expectation]] = {
    "quick": _seed_back,
    "slow": lambda seed, most_ms: _completed(milliseconds(seed, "slow", least=50, most=most_ms)),
    "thread_nap": lambda seed, most_ms: _completed(milliseconds(seed, "thread_nap", least=20, most=most_ms)),
    "cpu": lambda seed, rounds: _completed(checksum(seed, rounds)),
    "blocks_loop": _seed_back,
    "leaks_memory": lambda seed, megabytes: _completed(seed + megabytes * 256),
    "big_payload": lambda seed, text: _completed(f"{seed} {sha256(text.encode()).hexdigest()}"),
    "big_output": lambda seed, kib: _completed(noise(seed, kib)),
    "asks_database": _seed_back,
    "progress_steps": _seed_back,
    "progress_in_thread": _seed_back,
    "progress_in_process": _seed_back,
    "logs_lines": _seed_back,
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
    "snoozes": _seed_back,
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
    "needs_heartbeat": _seed_back,
}
