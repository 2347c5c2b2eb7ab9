"""Why is this job not running? A judgement of facts, and the facts of a real database."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from tenure import Tenure
from tenure.client.explain import judge
from tenure.client.facts import ExplainFacts
from tenure.client.status import JobStatus
from tenure.model.errors import InvalidJobId, JobNotFound
from tenure.model.states import State
from tenure.store import jobs, workers
from tenure.store.obstacles import Blocked, MissingChain
from tenure.store.workers import Registration
from tests.store.database import Database
from tests.store.forged_jobs import change_state

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
JOB = JobStatus(
    id=UUID(int=7),
    kind="send",
    queue="mail",
    state=State.PENDING,
    priority=50,
    capability=None,
    attempt=0,
    max_attempts=3,
    crashes=0,
    fence=0,
    worker_id=None,
    enqueued_at=NOW - timedelta(hours=1),
    run_at=None,
    started_at=None,
    finished_at=None,
    error=None,
    input={},
    output=None,
    timeout=None,
    key=None,
    parent_id=None,
    enqueued_by=None,
    auth=None,
    meta=None,
)
READY = ExplainFacts(job=JOB, now=NOW)
TRACE = "Traceback (most recent call last):\n  File x\nValueError: no such user"


def of(state: str, **fields) -> ExplainFacts:
    return replace(READY, job=replace(JOB, state=State(state), **fields))


RUNNING = replace(of("running", worker_id=UUID(int=9), started_at=NOW), host="moon", pid=42)


# Facts, the codes in their order, and what must be said.
BLOCKED = Blocked(
    total=5,
    missing=3,
    on_failure="cancel",
    failed=None,
    chains=[MissingChain(chain_id="a", job_id="b", kind="send", state="running")],
)

VERDICTS = {
    "nothing blocks it": (READY, ["ready"], "1 worker is ready"),
    "completed": (of("completed", finished_at=NOW), ["finished"], "completed at 2026-01-02 03:04:05 UTC.*retry"),
    "failed": (of("failed", finished_at=NOW, error=TRACE), ["finished"], "ValueError: no such user"),
    "canceled": (of("canceled", finished_at=NOW, error="canceled by anna"), ["finished"], "canceled by anna"),
    "dead letter": (
        of("dead_letter", attempt=3, crashes=1, error=TRACE),
        ["dead_letter"],
        "3 attempts and 1 crashes: ValueError: no such user; .*replay",
    ),
    "dead letter without an error": (of("dead_letter"), ["dead_letter"], "no error was stored"),
    "scheduled": (of("scheduled", run_at=NOW + timedelta(minutes=90)), ["not_due"], "scheduled in 1h 30m, at .*retry"),
    "retry": (
        of("retry", run_at=NOW + timedelta(seconds=10), error=TRACE),
        ["not_due"],
        r"retried \(ValueError: no such user\) in 10s",
    ),
    "due": (of("retry", run_at=NOW - timedelta(seconds=1)), ["due"], "about to become pending"),
    "due, but without a stager": (
        replace(of("scheduled", run_at=NOW), stager=False),
        ["due", "no_stager"],
        "the stager duty has no holder; start a worker",
    ),
    "scheduled and paused": (
        replace(of("scheduled", run_at=NOW + timedelta(hours=1)), paused_at=NOW),
        ["not_due", "paused"],
        "has been paused",
    ),
    "blocked, and about to run": (of("blocked"), ["blocked"], "about to become pending"),
    "blocked": (
        replace(of("blocked"), blocked=BLOCKED),
        ["blocked"],
        r"waits for 3 chains \(2 of 5 have ended\).*, now job b.* and 2 more",
    ),
    "blocked by a dead letter": (
        replace(
            of("blocked"), blocked=replace(BLOCKED, on_failure="wait", chains=[replace(BLOCKED.chains[0], state="dead_letter")])
        ),
        ["blocked", "blocker_failed"],
        "until that is replayed and completes",
    ),
    "blocked without a leader": (
        replace(of("blocked"), blocked=BLOCKED, resolver=False),
        ["blocked", "no_resolver"],
        "start a worker",
    ),
    "open group": (
        replace(of("blocked"), blocked=replace(BLOCKED, open=True, missing=0, chains=[])),
        ["open_group"],
        "has 5 members",
    ),
    "waiting": (of("waiting"), ["waiting"], "waits for"),
    "paused": (
        replace(READY, paused_at=NOW, paused_by="anna", pause_reason="upgrade"),
        ["paused"],
        r"'mail' has been paused since 2026-01-02 03:04:05.* by anna \(upgrade\); resume",
    ),
    "paused, and no worker": (
        replace(READY, paused_at=NOW, workers=0, for_queue=0, for_kind=0, for_capability=0),
        ["paused", "no_worker"],
        "",
    ),
    "no worker": (
        replace(READY, workers=0, for_queue=0, for_kind=0, for_capability=0),
        ["no_worker"],
        "no worker is alive; start",
    ),
    "no worker for its queue": (
        replace(READY, workers=3, for_queue=0, for_kind=0, for_capability=0),
        ["no_worker_for_queue"],
        "3 workers are alive, but none serves queue 'mail'; start",
    ),
    "no worker for its kind": (
        replace(READY, workers=3, for_queue=2, for_kind=0, for_capability=0),
        ["no_worker_for_kind"],
        "2 workers are serving queue 'mail', but none knows kind 'send'; start",
    ),
    "no worker for its capability": (
        replace(of("pending", capability="gpu"), for_capability=0),
        ["no_worker_for_capability"],
        "none has capability 'gpu'; start",
    ),
    "its workers drain": (
        replace(READY, for_capability=2, draining=2),
        ["draining"],
        r"all workers that could run it \(2\) are draining, so they claim no more jobs; start another one",
    ),
    "one of its workers drains": (replace(READY, for_capability=2, draining=1), ["ready"], "nothing blocks it"),
    "all slots busy": (replace(READY, slots=20, held=20), ["busy"], r"in use \(20 of 20\); wait, or start more"),
    "one ahead": (replace(READY, ahead=1), ["ahead"], "^1 job is ahead of it in queue 'mail'"),
    "many ahead": (replace(READY, ahead=1000, slots=2, held=2), ["busy", "ahead"], "1000 or more jobs are ahead"),
    "suspect": (of("pending", crashes=2), ["suspect"], "2 crashes, so it waits for a separate process"),
    "running": (
        replace(
            of("running", worker_id=UUID(int=9), started_at=NOW, attempt=2),
            host="moon",
            pid=42,
            lease_expires_at=NOW + timedelta(seconds=12),
        ),
        ["running"],
        r"since 2026.* on worker [0-]+9 \(process 42 on moon\), attempt 2 of 3; its lease expires in 12s",
    ),
    "running under a lease that ran out": (
        replace(RUNNING, lease_expires_at=NOW - timedelta(seconds=1)),
        ["running"],
        "its lease has expired: a live worker requeues it within seconds",
    ),
    "running under an expired lease, and no reaper": (
        replace(RUNNING, lease_expires_at=NOW - timedelta(seconds=1), workers=0),
        ["running"],
        "no live worker can requeue it; start one",
    ),
    "running on a worker with a name": (
        replace(RUNNING, worker_name="mail-1"),
        ["running"],
        r"\(process 42 on moon, named mail-1\)",
    ),
    "held by a worker that is not known": (
        replace(RUNNING, host=None, pid=None),
        ["held_by_unknown"],
        r"marked as running since .*, but worker [0-]+9, which holds it, is unknown: a live worker requeues it",
    ),
    "held by an unknown worker, and no reaper": (
        replace(RUNNING, host=None, pid=None, workers=0),
        ["held_by_unknown"],
        "no live worker can requeue it",
    ),
}


@pytest.mark.parametrize(("facts", "codes", "told"), VERDICTS.values(), ids=VERDICTS)
def test_judgement(facts, codes, told):
    reasons = judge(facts)
    assert [reason.code for reason in reasons] == codes
    assert any(re.search(told, reason.text) for reason in reasons), reasons


@pytest.mark.parametrize("state", State)
def test_there_is_an_answer_for_every_state(state):
    assert judge(of(state, finished_at=None))


# Facts of a real database


def hire(
    database: Database,
    *,
    queues: list[str],
    kinds: list[str],
    capabilities: list[str] | None = None,
    ttl: float = 60.0,
    slots: int = 2,
):
    registration = Registration(
        id=str(uuid4()),
        supervisor_id=str(uuid4()),
        host="moon",
        pid=42,
        queues=queues,
        kinds=kinds,
        capabilities=capabilities or [],
        concurrency=slots,
        version="0",
    )
    database.run(workers.register(registration, ttl))
    return registration.id


async def codes(client, job_id: str) -> list[str]:
    return [reason.code for reason in (await client.explain(job_id)).reasons]


async def test_what_is_missing_is_named_until_nothing_is(client, database):
    [job_id] = database.enqueue({"capability": "gpu"})
    assert await codes(client, job_id) == ["no_worker"]
    hire(database, queues=["default"], kinds=["work"], capabilities=["gpu"], ttl=-1)
    assert await codes(client, job_id) == ["no_worker"], "a worker whose lease ran out is none"
    hire(database, queues=["mail"], kinds=["work"], capabilities=["gpu"])
    assert await codes(client, job_id) == ["no_worker_for_queue"]
    hire(database, queues=["default"], kinds=["other"], capabilities=["gpu"])
    assert await codes(client, job_id) == ["no_worker_for_kind"]
    hire(database, queues=["default"], kinds=["work"])
    assert await codes(client, job_id) == ["no_worker_for_capability"]
    worker = hire(database, queues=["default", "mail"], kinds=["work", "other"], capabilities=["gpu"])
    assert await codes(client, job_id) == ["ready"]
    await client.pause("default", reason="upgrade", by="anna")
    assert await codes(client, job_id) == ["paused"]
    await client.resume("default")
    database.condemn(worker)
    assert await codes(client, job_id) == ["no_worker_for_capability"]


async def test_slots_and_the_jobs_ahead_are_counted(client, database):
    worker = hire(database, queues=["default"], kinds=["work"])
    database.enqueue({}, {})
    database.claim(worker)
    ids = database.enqueue(*[{} for _ in range(1200)])
    early, late = ids[3], ids[-1]
    urgent = database.enqueue({"priority": 90})[0]
    database.enqueue({"queue": "mail", "priority": 100})
    assert await codes(client, urgent) == ["busy"]
    explanation = await client.explain(early)
    assert [reason.code for reason in explanation.reasons] == ["busy", "ahead"]
    assert "(2 of 2)" in explanation.reasons[0].text
    assert explanation.reasons[1].text.startswith("4 jobs are ahead")
    assert "1000 or more" in (await client.explain(late)).reasons[1].text


async def test_jobs_that_its_workers_cannot_run_are_not_ahead_of_it(client, database):
    """Neither those of kinds that no worker knows, nor for lack of a capability, nor those that must run alone."""
    hire(database, queues=["default"], kinds=["work"], capabilities=["gpu"])
    hire(database, queues=["mail"], kinds=["strange"])
    strange = {"kind": "strange", "priority": 90}
    *_, suspect = database.enqueue(*[strange for _ in range(3)], {"kind": "strange"}, {"capability": "smtp"}, {"priority": 80})
    database.sql("update tenure.jobs set crashes = 2 where id = %s", suspect)
    [job_id] = database.enqueue({})
    assert await codes(client, job_id) == ["ready"]
    database.enqueue({"capability": "gpu", "priority": 60})
    explanation = await client.explain(job_id)
    assert [reason.text.partition(" of it")[0] for reason in explanation.reasons] == ["1 job is ahead"]


async def test_many_jobs_that_no_worker_can_run_do_not_hide_what_is_ahead(client, database):
    hire(database, queues=["default"], kinds=["work"])
    database.enqueue(*[{"kind": "strange"} for _ in range(1500)], {}, {})
    [job_id] = database.enqueue({})
    assert (await client.explain(job_id)).reasons[0].text.startswith("2 jobs are ahead")


async def test_a_job_whose_worker_has_no_row_says_so(client, database):
    worker = hire(database, queues=["default"], kinds=["work"])
    [job_id] = database.enqueue({})
    database.claim(worker)
    database.sql("delete from tenure.workers")
    assert await codes(client, job_id) == ["held_by_unknown"]


async def test_a_running_job_is_explained_with_its_worker(client, database):
    worker = hire(database, queues=["default"], kinds=["work"])
    [job_id] = database.enqueue({})
    database.claim(worker)
    explanation = await client.explain(job_id)
    assert (explanation.running, explanation.job.id) == (True, UUID(job_id))
    assert f"worker {worker} (process 42 on moon)" in explanation.reasons[0].text
    assert "its lease expires in" in explanation.reasons[0].text
    assert explanation.to_json()["reasons"][0]["code"] == "running"


async def test_a_scheduled_job_is_explained_with_its_time_and_a_missing_stager(client, database):
    hire(database, queues=["default"], kinds=["work"])
    [job_id] = database.enqueue({"delay": 3600})
    assert await codes(client, job_id) == ["not_due", "no_stager"]
    database.term("stager")
    assert await codes(client, job_id) == ["not_due"]
    database.end_term("stager")
    database.sql("update tenure.jobs set run_at = now() - interval '1 minute'")
    assert await codes(client, job_id) == ["due", "no_stager"]


async def test_suspects_dead_letters_and_finished_jobs(client, database):
    worker = hire(database, queues=["default"], kinds=["work"])
    suspect, dead, done = database.enqueue({"priority": 100}, {"queue": "a"}, {"queue": "b"})
    database.sql("update tenure.jobs set crashes = 2 where id = %s", suspect)
    change_state(database.sql, "dead_letter", dead, error="boom")
    database.run(jobs.finish(database.claim(worker, queues=["b"]).finished()))
    assert await codes(client, suspect) == ["suspect"]
    assert "boom" in (await client.explain(dead)).reasons[0].text
    explanation = await client.explain(done)
    assert ([reason.code for reason in explanation.reasons], explanation.running) == (["finished"], False)


async def test_a_job_that_is_not_there_cannot_be_explained(client):
    with pytest.raises(JobNotFound):
        await client.explain(uuid4())
    with pytest.raises(InvalidJobId):
        await client.explain("x")


def test_code_without_a_loop_gets_an_explanation_too(dsn, database):
    app = Tenure(dsn)
    [job_id] = database.enqueue({})
    assert app.client().explain_sync(job_id).reasons[0].code == "no_worker"
    app._portal.close()
