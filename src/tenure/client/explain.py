"""Why a job is not running. Pure: depends only on the facts it is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tenure.client.explain_blocked import blocked_by
from tenure.client.explain_waiting import waits_for
from tenure.client.facts import ExplainFacts, Reason
from tenure.client.report.words import clock
from tenure.client.status import JobStatus
from tenure.model.durations import format_duration
from tenure.model.names import GROUP_KIND
from tenure.model.states import HELD, State
from tenure.store.obstacles import LimitGroup
from tenure.store.workers import SUSPECT_CRASHES

MOST_COUNTED = 1000
"""Counting the jobs ahead stops at this number."""


@dataclass(frozen=True, slots=True)
class Explanation:
    job: JobStatus
    running: bool
    reasons: list[Reason]

    def to_json(self) -> dict[str, Any]:
        reasons = [{"code": reason.code, "text": reason.text} for reason in self.reasons]
        return {"job": self.job.to_json(), "running": self.running, "reasons": reasons}


def explained(facts: ExplainFacts) -> Explanation:
    return Explanation(facts.job, facts.job.state in HELD, [*judge(facts), *_expires(facts)])


def judge(facts: ExplainFacts) -> list[Reason]:  # noqa: PLR0911 - a line for each state
    """All reasons why the job does not run, the most final first. Never empty."""
    job = facts.job
    if job.state.finished:
        return [_finished(job)]
    match job.state:
        case State.RUNNING:
            return [_running(facts)]
        case State.DEAD_LETTER:
            return [_dead(job)]
        case State.SCHEDULED | State.RETRY:
            return [_later(facts), *_no_stager(facts), *_queue(facts)]
        case State.BLOCKED:
            return [*blocked_by(facts), *([] if job.kind == GROUP_KIND else _queue(facts))]
        case State.WAITING:
            return [*waits_for(facts), *(blocked_by(facts) if facts.blocked and facts.blocked.missing else []), *_queue(facts)]
        case _:
            return [*_queue(facts), *_turn(facts)] or [_soon(facts)]


def _finished(job: JobStatus) -> Reason:
    error = f" ({_last_line(job.error)})" if job.error else ""
    verb = "was canceled" if job.state == State.CANCELED else job.state.value
    text = f"it {verb} at {_moment(job.finished_at)}{error}"
    return Reason("finished", text, "; retry() runs it again as a new job")


def _running(facts: ExplainFacts) -> Reason:
    job = facts.job
    if facts.host is None:
        return _held_by_unknown(facts)
    named = f", named {facts.worker_name}" if facts.worker_name not in (None, f"{facts.host}:{facts.pid}") else ""
    worker = f"worker {job.worker_id} (process {facts.pid} on {facts.host}{named})"
    lease = ""
    if facts.lease_expires_at is not None:
        left = facts.lease_expires_at - facts.now
        lease = f"; its lease expires in {_span(left)}" if left > timedelta() else f"; its lease has expired: {_requeued(facts)}"
    attempt = f"attempt {job.attempt} of {job.max_attempts}"
    return Reason("running", f"it has been running since {_moment(job.started_at)} on {worker}, {attempt}{lease}")


def _held_by_unknown(facts: ExplainFacts) -> Reason:
    """The worker's row is missing, for example after a failover to a standby that lagged, or after a restored backup."""
    job = facts.job
    text = (
        f"it has been marked as running since {_moment(job.started_at)}, but worker {job.worker_id}, which holds it, is unknown"
    )
    return Reason("held_by_unknown", f"{text}: {_requeued(facts)}")


def _requeued(facts: ExplainFacts) -> str:
    if facts.workers == 0:
        return "no live worker can requeue it; start one: tenure worker"
    return "a live worker requeues it within seconds"


def _dead(job: JobStatus) -> Reason:
    why = _last_line(job.error) or "no error was stored"
    return Reason(
        "dead_letter",
        f"it was dead-lettered after {job.attempt} attempts and {job.crashes} crashes: {why}; fix the cause, then replay it",
        f": client.replay({str(job.id)!r})",
    )


def _later(facts: ExplainFacts) -> Reason:
    job = facts.job
    what = "it failed and will be retried" if job.state == State.RETRY else "it is scheduled"
    if job.run_at is None or job.run_at <= facts.now:
        return Reason("due", f"{what}, has been due since {_moment(job.run_at)}, and is about to become pending")
    wait = f"in {_span(job.run_at - facts.now)}, at {_moment(job.run_at)}"
    error = f" ({_last_line(job.error)})" if job.state == State.RETRY and job.error else ""
    return Reason("not_due", f"{what}{error} {wait}", "; retry() runs it now")


def _expires(facts: ExplainFacts) -> list[Reason]:
    """Not a reason, but what will happen to a job that waits for too long."""
    at = facts.job.expires_at
    if at is None or facts.job.state.finished or facts.job.state == State.DEAD_LETTER:
        return []
    if at <= facts.now:
        return [Reason("expires", f"it expired at {_moment(at)}, and is about to be canceled")]
    return [Reason("expires", f"it is canceled if it has not started in {_span(at - facts.now)}, at {_moment(at)}")]


def _no_stager(facts: ExplainFacts) -> list[Reason]:
    if facts.stager:
        return []
    text = "no process makes jobs pending when they are due: the stager duty has no holder; start a worker, which takes it over"
    return [Reason("no_stager", text)]


def _queue(facts: ExplainFacts) -> list[Reason]:
    """Reasons that concern the whole queue, or all jobs like this one."""
    job, found = facts.job, []
    if facts.paused_at is not None:
        who = f" by {facts.paused_by}" if facts.paused_by else ""
        why = f" ({facts.pause_reason})" if facts.pause_reason else ""
        text = f"queue {job.queue!r} has been paused since {_moment(facts.paused_at)}{who}{why}"
        found.append(Reason("paused", text, f"; resume it: client.resume({job.queue!r})"))
    if (missing := _no_worker(facts)) is not None:
        found.append(missing)
    return found


def _no_worker(facts: ExplainFacts) -> Reason | None:
    job = facts.job
    if facts.workers == 0:
        return Reason("no_worker", "no worker is alive", "; start one: tenure worker --app MODULE:APP")
    if facts.for_queue == 0:
        text = f"{_workers(facts.workers)} alive, but none serves queue {job.queue!r}"
        return Reason("no_worker_for_queue", text, f"; start one: tenure worker --app MODULE:APP --queues {job.queue}")
    if facts.for_kind == 0:
        text = f"{_workers(facts.for_queue)} serving queue {job.queue!r}, but none knows kind {job.kind!r}"
        return Reason("no_worker_for_kind", f"{text}; start one whose app defines it, or import the module that does")
    if facts.for_capability == 0:
        text = f"{_workers(facts.for_kind)} able to run kind {job.kind!r}, but none has capability {job.capability!r}"
        return Reason("no_worker_for_capability", f"{text}; start one with that capability")
    if facts.draining == facts.for_capability:
        text = f"all workers that could run it ({facts.draining}) are draining, so they claim no more jobs"
        return Reason("draining", f"{text}; start another one, or resume them: tenure workers resume WORKER")
    return None


def _turn(facts: ExplainFacts) -> list[Reason]:
    """Why other jobs run before it. Only relevant where a live worker could run it."""
    job, found = facts.job, []
    if facts.paused_at is not None or facts.for_capability == 0:
        return []
    found += [reason for group in facts.limit_groups for reason in _limit_group(group)]
    found += _removed_limit(facts)
    if facts.held >= facts.slots:
        text = f"all slots of the workers that could run it are in use ({facts.held} of {facts.slots})"
        found.append(Reason("busy", f"{text}; wait, or start more workers"))
    if facts.ahead:
        count = f"{MOST_COUNTED} or more jobs are" if facts.ahead >= MOST_COUNTED else _jobs(facts.ahead)
        text = f"{count} ahead of it in queue {job.queue!r}, with higher priority or earlier"
        found.append(Reason("ahead", f"{text}; wait, start more workers, or enqueue urgent jobs with a higher priority"))
    if job.crashes >= SUSPECT_CRASHES:
        text = f"it was in {job.crashes} crashes, so it waits for a separate process"
        found.append(Reason("suspect", f"{text}, which `tenure worker` starts as soon as no other such job runs"))
    return found


def _removed_limit(facts: ExplainFacts) -> list[Reason]:
    """It was limited when it became pending, and that limit was removed since."""
    lines = (facts.job.limit_group or "").splitlines()
    if len(lines) <= len(facts.limit_groups):
        return []
    text = f"it waits for a limit that was removed ({', '.join(lines)}): workers find such jobs within a minute"
    return [Reason("limit_removed", text)]


def _limit_group(group: LimitGroup) -> Iterator[Reason]:
    """Which parts of a limit are used up."""
    for what, running, most in ((group.name, group.running, group.most), (group.line, group.running_of_key, group.most_of_key)):
        if most is not None and running >= most:
            way_out = f"wait, or change it: tenure limits set {group.name} --concurrency ..."
            yield Reason("limit_full", f"limit {what} is full: {running} of {most} running; {way_out}")
    for what, rate, seconds, wait in (
        (group.name, group.rate, group.seconds, group.wait),
        (group.line, group.rate_of_key, group.seconds_of_key, group.wait_of_key),
    ):
        if wait is not None and seconds is not None:
            text = f"{rate} starts in {format_duration(timedelta(seconds=seconds))}"
            yield Reason("rate", f"the rate of {what} is used up ({text}): next start in {_span(timedelta(seconds=wait))}")


def _soon(facts: ExplainFacts) -> Reason:
    text = f"nothing blocks it: {_workers(facts.for_capability)} ready to run it"
    return Reason("ready", f"{text}; if it is still pending after a few seconds, check the workers' logs")


def _workers(count: int) -> str:
    return "1 worker is" if count == 1 else f"{count} workers are"


def _jobs(count: int) -> str:
    return "1 job is" if count == 1 else f"{count} jobs are"


def _last_line(error: str | None) -> str:
    lines = (error or "").strip().splitlines()
    return lines[-1].strip() if lines else ""


def _moment(at: datetime | None) -> str:
    return "an unknown time" if at is None else clock(at, timespec="seconds")


def _span(span: timedelta) -> str:
    return format_duration(timedelta(seconds=max(1, round(span.total_seconds()))))
