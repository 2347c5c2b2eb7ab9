"""What one client process of a campaign does. Whatever it asks for, it writes down what it was told."""

from __future__ import annotations

import asyncio
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
from tenure.chaos import work
from tenure.chaos.ledger import ClientCall, JobRequest, Ledger, as_line
from tenure.chaos.offers import Drawer, Drawn
from tenure.chaos.plan import is_quiet
from tenure.model.errors import NotEnqueued, NotPossible

BULK_CLIENTS = 3
MOST_OFFERS = 1_000_000_000
SLOW_A_SECOND = 3.0
ORDER_EVERY = 0.2
DECIDE_EVERY = 0.1
WATCH_EVERY = 0.2
LOOK_EVERY = 0.5
REMEMBERED = 20_000
FAR = 30.0  # seconds that a call may take; after an outage everything takes its time

FAULTS_BEGAN = "faults-began"
"""A file in the ledger's folder with the time at which the plan of faults begins."""

UNDER_WAY = "select count(*) from tenure.jobs where state in ('pending', 'running', 'retry')"


@dataclass(frozen=True, kw_only=True)
class Task:
    place: int
    """Which client it is, so that no two offer the same number."""
    dsn: str
    folder: str
    seed: int
    lease: float
    backlog: int


class Load:
    def __init__(self, task: Task) -> None:
        self._task = task
        self._file = Ledger(Path(task.folder)).write(f"calls-{task.place}.jsonl")
        self._numbers = count(task.place * MOST_OFFERS + 1)
        self._recent: deque[tuple[str, str]] = deque(maxlen=REMEMBERED)
        self._faults_began: float | None = None
        self._room = asyncio.Event()
        self._over = asyncio.Event()
        self.calls: Counter[str] = Counter()
        self.accepted = 0
        self.surprises: Counter[str] = Counter()
        """Errors that are not of the kinds we promise."""

    async def run(self) -> None:
        """Until `finish()`; then what is under way comes to its end."""
        bulk = [self._bulk(self._drawer(place)) for place in range(BULK_CLIENTS)]
        others = [self._slow(self._drawer(11)), self._orders(), self._decide(self._random(12)), self._watch(self._random(13))]
        async with asyncio.TaskGroup() as tasks:
            for client in (*bulk, *others, self._gauge()):
                tasks.create_task(client)
        self._file.close()

    def finish(self) -> None:
        self._over.set()
        self._room.set()

    # Offering

    async def _bulk(self, drawer: Drawer) -> None:
        while not self._over.is_set():
            await self._room.wait()
            await self._offer(drawer.batch())

    async def _slow(self, drawer: Drawer) -> None:
        async with asyncio.TaskGroup() as tasks:
            while not self._over.is_set():
                await self._rest(drawer.draws.expovariate(SLOW_A_SECOND))
                if self._room.is_set() or self._is_quiet():
                    tasks.create_task(self._offer([drawer.slow()]))

    async def _offer(self, drawn: Sequence[Drawn]) -> None:
        offers = tuple(one.offer for one in drawn)
        began = time.time()
        answer, handles = await self._asked(work.app.enqueue_many([one.call for one in drawn]))
        ids = tuple(str(handle.id) for handle in handles or ())
        existed = tuple(bool(handle.existed) for handle in handles or ())
        self._keep(ClientCall("enqueue", began, time.time(), answer, offers, ids, existed))
        if answer == "ok":
            self.accepted += len(ids)
            self._recent.extend(zip(ids, (offer.kind for offer in offers), strict=True))

    async def _orders(self) -> None:
        """A row of the caller's own and a job, in one transaction."""
        while not self._over.is_set():
            await self._rest(ORDER_EVERY)
            n = next(self._numbers)
            began = time.time()
            answer, job = await self._asked(self._order(n))
            self._keep(
                ClientCall(
                    "enqueue",
                    began,
                    time.time(),
                    answer,
                    (JobRequest(n, "ordered", None),),
                    (job,) if job else (),
                    (False,) if job else (),
                )
            )
            self.accepted += answer == "ok"

    async def _order(self, n: int) -> str:
        async with await AsyncConnection.connect(self._task.dsn, connect_timeout=5) as connection:
            handle = await work.ordered.using(conn=connection).enqueue(n)
            await connection.execute("insert into chaos.effects (relation, n, job) values ('orders', %s, %s)", [n, handle.id])
        return str(handle.id)

    # Deciding

    async def _decide(self, draws: Random) -> None:
        client = work.app.client()
        while not self._over.is_set():
            await self._rest(DECIDE_EVERY)
            if not self._recent:
                continue
            job, kind = draws.choice(self._recent) if draws.random() < 0.5 else self._recent[-1]
            verb = draws.choice(
                ["replay", "retry", "retry"] if kind in {"doomed", "given_up"} else ["cancel", "delete", "cancel"]
            )
            await self._ask(verb, job, getattr(client, verb))

    async def _ask(self, verb: str, job: str, ask: Callable[[str], Awaitable[Any]]) -> None:
        began = time.time()
        answer, reply = await self._asked(ask(job))
        self._keep(
            ClientCall(
                verb, began, time.time(), answer, job=job, reply=reply if reply is None or isinstance(reply, int) else str(reply)
            )
        )

    async def _watch(self, draws: Random) -> None:
        client = work.app.client()
        async with asyncio.TaskGroup() as tasks:
            while not self._over.is_set():
                await self._rest(WATCH_EVERY)
                if self._recent:
                    job, _ = self._recent[-1] if draws.random() < 0.7 else draws.choice(self._recent)
                    tasks.create_task(self._result(client, job))

    async def _result(self, client: Any, job: str) -> None:
        began = time.time()
        try:
            told: Any = ["completed", await client.wait(job, timeout=5.0)]
        except JobCanceled:
            told = ["canceled", None]
        except (JobFailed, ResultTimeout, JobNotFound, TenureError):
            return
        except Exception as error:  # noqa: BLE001
            self._surprise(error)
            return
        self._keep(ClientCall("result", began, time.time(), "ok", job=job, reply=told))

    # What they share

    async def _asked(self, asking: Awaitable[Any]) -> tuple[str, Any]:
        """The answer and what came with it."""
        try:
            async with asyncio.timeout(FAR):
                return "ok", await asking
        except (NotEnqueued, NotPossible, JobNotFound):
            return "refused", None
        except (TenureError, psycopg.Error, TimeoutError, OSError):
            return "unknown", None
        except Exception as error:  # noqa: BLE001
            self._surprise(error)
            return "unknown", None

    def _surprise(self, error: Exception) -> None:
        self.surprises[f"{type(error).__name__}: {error}"[:200]] += 1

    def _keep(self, call: ClientCall) -> None:
        self.calls[f"{call.verb} {call.answer}"] += 1
        self._file.write(as_line(call))

    def _drawer(self, place: int) -> Drawer:
        return Drawer(self._seed(place), self._task.lease, lambda: next(self._numbers))

    def _random(self, place: int) -> Random:
        return Random(self._seed(place))  # noqa: S311 - chosen to be repeatable

    def _seed(self, place: int) -> int:
        return (self._task.seed * 100 + self._task.place) * 100 + place

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            pass

    def _is_quiet(self) -> bool:
        if self._faults_began is None:
            with suppress(OSError, ValueError):
                self._faults_began = float((Path(self._task.folder) / FAULTS_BEGAN).read_text())
        return self._faults_began is not None and is_quiet(time.time() - self._faults_began)

    async def _gauge(self) -> None:
        """More is offered only while the workers keep up: the campaign must come to an end."""
        while not self._over.is_set():
            with suppress(psycopg.Error, OSError):
                async with await AsyncConnection.connect(self._task.dsn, autocommit=True, connect_timeout=5) as connection:
                    [(live,)] = await (await connection.execute(UNDER_WAY)).fetchall()
                room = live < self._task.backlog and not self._is_quiet()
                (self._room.set if room else self._room.clear)()
            await self._rest(LOOK_EVERY)
