"""A client process of a campaign: `python -m tenure.chaos.client_process PARENT TASK`, with the task as JSON.

It enqueues jobs, cancels, deletes, retries and replays some, waits for results, sends events to workflows, and records every call
and its answer. It prints its counts twice a second.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from psycopg import AsyncConnection

from tenure import JobCanceled, JobFailed, JobNotFound, ResultTimeout, TenureError
from tenure.chaos import jobs, workflows
from tenure.chaos.event_sender import EventSender
from tenure.chaos.job_mix import DrawnJob, JobMix
from tenure.chaos.ledger import ClientCall, JobRequest, Ledger, as_line
from tenure.chaos.plan import is_quiet
from tenure.chaos.web_client import WebClient
from tenure.lifeline import die_with
from tenure.manager.loops import run_loop
from tenure.model.errors import NotEnqueued, NotPossible

BULK_CLIENTS = 3
MAX_REQUESTS = 1_000_000_000  # of one client process
SLOW_JOBS_PER_SECOND = 3.0
ORDER_EVERY = 0.2
CONTROL_EVERY = 0.1
RESULT_EVERY = 0.2
WEB_CHANGES = 0.3
"""The share of changes that go through the web server."""
CHECK_BACKLOG_EVERY = 0.5
REPORT_EVERY = 0.5
REMEMBERED_JOBS = 20_000
CALL_TIMEOUT = 30.0  # seconds; after an outage every call is slow

FAULTS_BEGAN = "faults-began"
"""A file in the ledger's folder with the time at which the plan of faults begins."""

BACKLOG = "select count(*) from tenure.jobs where state in ('pending', 'running', 'retry')"


@dataclass(frozen=True, kw_only=True)
class ClientTask:
    number: int
    """Of this client process, so that no two processes use the same request numbers."""
    dsn: str
    folder: str
    seed: int
    lease: float
    backlog: int
    workflows: float
    """The share of workflows in the bulk."""
    web_port: int | None = None
    """Of the web server; None: there is none."""


class CampaignClient:
    def __init__(self, task: ClientTask) -> None:
        self._task = task
        self._file = Ledger(Path(task.folder)).write(f"calls-{task.number}.jsonl")
        self._numbers = count(task.number * MAX_REQUESTS + 1)
        self._recent: deque[tuple[str, str]] = deque(maxlen=REMEMBERED_JOBS)
        self._events = EventSender(self._random(14), self._answer, self._record)
        self._web = WebClient(jobs.app, task.number, task.web_port) if task.web_port is not None else None
        self._faults_began: float | None = None
        self._room = asyncio.Event()
        self._finished = asyncio.Event()
        self.calls: Counter[str] = Counter()
        self.accepted = 0
        self.unexpected_errors: Counter[str] = Counter()
        """Errors that are not of a documented type."""

    async def run(self) -> None:
        """Runs until `finish()`; then calls that are under way are completed."""
        bulk = [self._enqueue_bulk(self._mix(number)) for number in range(BULK_CLIENTS)]
        others = [
            self._enqueue_slow(self._mix(11)),
            self._enqueue_orders(),
            self._control_jobs(self._random(12)),
            self._fetch_results(self._random(13)),
            self._events.run(self._finished),
        ]
        async with asyncio.TaskGroup() as tasks:
            for client in (*bulk, *others, self._watch_backlog()):
                tasks.create_task(client)
        self._file.close()

    def finish(self) -> None:
        self._finished.set()
        self._room.set()

    # Enqueue

    async def _enqueue_bulk(self, mix: JobMix) -> None:
        while not self._finished.is_set():
            await self._room.wait()
            await self._enqueue(mix.batch())

    async def _enqueue_slow(self, mix: JobMix) -> None:
        async with asyncio.TaskGroup() as tasks:
            while not self._finished.is_set():
                await self._sleep(mix.random.expovariate(SLOW_JOBS_PER_SECOND))
                if self._room.is_set() or self._is_quiet():
                    tasks.create_task(self._enqueue([mix.slow()]))

    async def _enqueue(self, drawn: Sequence[DrawnJob]) -> None:
        requests = tuple(one.request for one in drawn)
        for request in requests:
            if request.kind == workflows.WAITING_KIND:
                self._events.add(request.n)  # before the answer: the job may exist without one
        began = time.time()
        answer, handles = await self._answer(jobs.app.enqueue_many([one.call for one in drawn]))
        ids = tuple(str(handle.id) for handle in handles or ())
        existed = tuple(bool(handle.existed) for handle in handles or ())
        self._record(ClientCall("enqueue", began, time.time(), answer, requests, ids, existed))
        if answer == "ok":
            self.accepted += len(ids)
            self._recent.extend(zip(ids, (request.kind for request in requests), strict=True))

    async def _enqueue_orders(self) -> None:
        """A row of the caller and a job, in one transaction."""
        while not self._finished.is_set():
            await self._sleep(ORDER_EVERY)
            n = next(self._numbers)
            began = time.time()
            answer, job = await self._answer(self._enqueue_order(n))
            ids, existed = ((job,), (False,)) if job else ((), ())
            request = JobRequest(n, "ordered", None)
            self._record(ClientCall("enqueue", began, time.time(), answer, (request,), ids, existed))
            self.accepted += answer == "ok"

    async def _enqueue_order(self, n: int) -> str:
        async with await AsyncConnection.connect(self._task.dsn, connect_timeout=5) as connection:
            handle = await jobs.ordered.using(conn=connection).enqueue(n)
            await connection.execute("insert into chaos.effects (relation, n, job) values ('orders', %s, %s)", [n, handle.id])
        return str(handle.id)

    # Cancel, delete, retry, replay, wait

    async def _control_jobs(self, random: Random) -> None:
        client = jobs.app.client()
        if self._web is not None:
            await self._web.open()
        while not self._finished.is_set():
            await self._sleep(CONTROL_EVERY)
            if not self._recent:
                continue
            job, kind = random.choice(self._recent) if random.random() < 0.5 else self._recent[-1]
            failing = kind in {jobs.always_failing.name, jobs.failed_by_handler.name, workflows.workflow_undone.name}
            verb = random.choice(["replay", "retry", "retry"] if failing else ["cancel", "delete", "cancel"])
            if self._web is not None and random.random() < WEB_CHANGES:
                await self._control_by_web(self._web, verb, job)
            else:
                await self._control(verb, job, getattr(client, verb))

    async def _control(self, verb: str, job: str, method: Callable[[str], Awaitable[Any]]) -> None:
        began = time.time()
        answer, reply = await self._answer(method(job))
        plain = reply if reply is None or isinstance(reply, int) else str(reply)
        self._record(ClientCall(verb, began, time.time(), answer, job=job, reply=plain))

    async def _control_by_web(self, web: WebClient, verb: str, job: str) -> None:
        began = time.time()
        answer, reply, unexpected = await web.change(verb, job)
        if unexpected is not None:
            self.unexpected_errors[unexpected] += 1
        self._record(ClientCall(verb, began, time.time(), answer, job=job, reply=reply, actor=web.actor))

    async def _fetch_results(self, random: Random) -> None:
        client = jobs.app.client()
        async with asyncio.TaskGroup() as tasks:
            while not self._finished.is_set():
                await self._sleep(RESULT_EVERY)
                if self._recent:
                    job, _ = self._recent[-1] if random.random() < 0.7 else random.choice(self._recent)
                    tasks.create_task(self._fetch_result(client, job))

    async def _fetch_result(self, client: Any, job: str) -> None:
        began = time.time()
        try:
            reply: Any = ["completed", await client.wait(job, timeout=5.0)]
        except JobCanceled:
            reply = ["canceled", None]
        except (JobFailed, ResultTimeout, JobNotFound, TenureError):
            return
        except Exception as error:  # noqa: BLE001
            self._add_unexpected(error)
            return
        self._record(ClientCall("result", began, time.time(), "ok", job=job, reply=reply))

    # Common

    async def _answer(self, call: Awaitable[Any]) -> tuple[str, Any]:
        """The answer, and the value that was returned."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                return "ok", await call
        except (NotEnqueued, NotPossible, JobNotFound):
            return "refused", None
        except (TenureError, psycopg.Error, TimeoutError, OSError):
            return "unknown", None
        except Exception as error:  # noqa: BLE001
            self._add_unexpected(error)
            return "unknown", None

    def _add_unexpected(self, error: Exception) -> None:
        self.unexpected_errors[f"{type(error).__name__}: {error}"[:200]] += 1

    def _record(self, call: ClientCall) -> None:
        self.calls[f"{call.verb}{' by web' if call.actor else ''} {call.answer}"] += 1
        self._file.write(as_line(call))

    def _mix(self, number: int) -> JobMix:
        return JobMix(self._seed(number), self._task.lease, self._task.workflows, lambda: next(self._numbers))

    def _random(self, number: int) -> Random:
        return Random(self._seed(number))  # noqa: S311 - chosen to be repeatable

    def _seed(self, number: int) -> int:
        return (self._task.seed * 100 + self._task.number) * 100 + number

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._finished.wait()
        except TimeoutError:
            pass

    def _is_quiet(self) -> bool:
        if self._faults_began is None:
            with suppress(OSError, ValueError):
                self._faults_began = float((Path(self._task.folder) / FAULTS_BEGAN).read_text())
        return self._faults_began is not None and is_quiet(time.time() - self._faults_began)

    async def _watch_backlog(self) -> None:
        """Enqueues more only while the workers keep up: the campaign must be able to finish all jobs."""
        while not self._finished.is_set():
            with suppress(psycopg.Error, OSError):
                async with await AsyncConnection.connect(self._task.dsn, autocommit=True, connect_timeout=5) as connection:
                    [(backlog,)] = await (await connection.execute(BACKLOG)).fetchall()
                room = backlog < self._task.backlog and not self._is_quiet()
                (self._room.set if room else self._room.clear)()
            await self._sleep(CHECK_BACKLOG_EVERY)


async def run_client(client: CampaignClient) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, client.finish)
    reporting = asyncio.create_task(_report_repeatedly(client))
    try:
        await client.run()
    finally:
        reporting.cancel()
        await jobs.app.close()
    _report(client)


async def _report_repeatedly(client: CampaignClient) -> None:
    while True:
        _report(client)
        await asyncio.sleep(REPORT_EVERY)


def _report(client: CampaignClient) -> None:
    counts = {"accepted": client.accepted, "calls": client.calls, "unexpected_errors": client.unexpected_errors}
    print(json.dumps(counts), flush=True)  # noqa: T201


def main() -> None:
    die_with(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the campaign, which ends this process
    task = ClientTask(**json.loads(sys.argv[2]))
    jobs.app.configure(dsn=task.dsn)
    os.environ["TENURE_LOG"] = "error"
    run_loop(run_client(CampaignClient(task)))


if __name__ == "__main__":
    main()
