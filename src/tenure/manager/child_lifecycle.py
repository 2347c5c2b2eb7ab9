"""The life of one child: from its start, by its registration, to its burial."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Iterable
from itertools import count
from uuid import UUID

from tenure.leader.duties.duty import Outlets
from tenure.leader.duties.requeue import give_back
from tenure.leader.settings import LeaderSettings
from tenure.manager.process import ChildProcess
from tenure.manager.services import SupervisorServices
from tenure.manager.spec import ChildSpec, Hello
from tenure.model.events import WorkerDied
from tenure.store import workers
from tenure.store.link import Link
from tenure.store.workers import Registration

log = logging.getLogger("tenure")

QUICK_DEATH = 10.0
"""A child that dies sooner than this after its start is replaced more and more slowly."""

DISMISSED = (-signal.SIGTERM, -signal.SIGINT)
"""Exit codes of a child that a stop of the whole process group met before it could handle signals."""


class ChildLifecycle:
    def __init__(
        self, spec: ChildSpec, house: SupervisorServices, *, spare: bool = False, ready: Callable[[Hello], None]
    ) -> None:
        """A `spare` one is to take another's place, once it is ready."""
        self.child = ChildProcess(spec)
        self.spare = spare
        self.error: Exception | None = None
        """Why it never came to be of use."""
        self._house = house
        self._told_ready = ready
        self._ready = asyncio.Event()
        self._over = asyncio.Event()
        self._lived = 0.0

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    @property
    def died_young(self) -> bool:
        """Ended soon, and not because it was told to."""
        return self._over.is_set() and not self.child.said_bye and not self.child.leaving and self._lived < QUICK_DEATH

    @property
    def proven(self) -> bool:
        """Has worked for long enough to show that it can."""
        return self.is_ready and not self._over.is_set() and self.child.age >= QUICK_DEATH

    async def ready_or_over(self, seconds: float) -> bool:
        """Whether it became ready within that time."""
        await _first((self._ready, self._over), seconds)
        return self.is_ready and not self._over.is_set()

    async def over(self, seconds: float) -> None:
        """Returns when it is, or after so many seconds."""
        await _first((self._over,), seconds)

    def drain(self) -> None:
        """It goes in its own time: nobody waits for it."""
        self.child.stop(self.child.hello.drain if self.child.hello else 0.0)

    async def run(self) -> None:
        """Never raises: what went wrong stands in `error`."""
        try:
            await self._live()
        except Exception as error:  # noqa: BLE001 - whoever keeps the number must never end unnoticed
            self.error = error
        finally:
            self._over.set()

    @property
    def _unwanted(self) -> bool:
        return self.child.leaving or self._house.stopping.is_set()

    async def _live(self) -> None:
        child, house = self.child, self._house
        child.started = time.monotonic()
        await child.spawn()
        taken = {other.number for other in house.children}
        child.number = next(number for number in count(1) if number not in taken)
        house.children.add(child)
        try:
            hello = await child.greeted()
            if hello is not None and not self._unwanted:
                await house.open(hello)
                await house.declare(hello)
                await self._admit(hello)
            elif hello is not None:
                child.stop(0.0)
            await child.watch(house.renew_soon)
        finally:
            self._lived = child.age
            house.children.discard(child)
            child.kill()
            child.close()
        if child.serving:
            await self._bury()
        elif child.exit_code in DISMISSED:
            log.info("worker process was ended by a signal before it was ready", extra=facts_of(child))
        elif not self._unwanted:
            log.error("worker process died before it was ready", extra=facts_of(child))

    async def _admit(self, hello: Hello) -> None:
        child, house = self.child, self._house
        registration = Registration(
            id=child.worker_id,
            supervisor_id=house.id,
            pid=child.pid,
            queues=hello.queues,
            kinds=hello.kinds,
            capabilities=hello.capabilities,
            concurrency=hello.concurrency,
            name=child.name,
        )
        await house.insist(lambda: house.link.fetch(workers.register(registration, hello.lease)))
        child.welcome()
        house.events.catch_up()
        if self._unwanted:
            child.stop(0.0)
            return
        self._ready.set()
        self._told_ready(hello)

    async def _bury(self) -> None:
        """The process is gone for certain, so its jobs can come back now instead of when its lease runs out."""
        child, house = self.child, self._house
        how: workers.Death = "stopped" if child.said_bye or child.overstayed or house.stopping.is_set() else "crashed"
        if how == "crashed":
            log.error("worker process died; starting another", extra=facts_of(child))
            house.events.emit(WorkerDied(worker_id=UUID(child.worker_id), cause=cause(child.exit_code), worker=child.name))

        leader = LeaderSettings(**child.hello.leader) if child.hello else LeaderSettings()
        outlets = Outlets(house.tell, house.events, leader.dead_letter_level)

        async def give() -> None:
            # This may take long and must not delay the renewal. The process has released its own connections by now.
            async with Link(house.link.database, "return", hot=True) as link:
                await link.fetch(workers.condemn(child.worker_id, house.id, how))
                await give_back(link, child.worker_id, outlets)

        await house.insist(give)
        house.renew_soon()  # it also tells whether jobs must now run alone


async def _first(events: Iterable[asyncio.Event], seconds: float) -> None:
    """Returns when one of them is set, or after so many seconds."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def facts_of(child: ChildProcess) -> dict[str, object]:
    """For the log, of one that has ended."""
    return {"child_pid": child.pid, "worker": child.name, "pool": child.spec.pool, "cause": cause(child.exit_code)}


def cause(code: int | None) -> str:
    if code is None:
        return "unknown"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
