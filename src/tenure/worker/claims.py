"""Where the next jobs come from: the open ones, and those at gates. They take turns at being asked first."""

from __future__ import annotations

from collections.abc import Callable

from tenure.model.errors import StoreUnavailable
from tenure.model.kinds import Registry
from tenure.pacing import FOREVER
from tenure.store.link import Link
from tenure.store.place import Place
from tenure.worker.claimer import Amends, Claimer, Scope
from tenure.worker.gated import GatedClaimer
from tenure.worker.gates import Gates
from tenure.worker.runs import Run


class Claims:
    def __init__(self, place: Place, kinds: Registry, scope: Scope, worker_id: str, tell: Callable[[str], None]) -> None:
        # Lost in a crash of the server, a claim simply never happened; so it need not wait for the disk.
        self._link = Link(place, "claim", hot=True, durable=False)
        # But one that counts under a limit must not be forgotten while its job runs.
        self._gated_link = Link(place, "gates", hot=True)
        self._gates = Gates(self._link, kinds, list(scope.queues), worker_id, tell)
        amends = Amends()
        self._open = Claimer(self._link, kinds, scope, worker_id, gates=self._gates, amends=amends)
        self._gated = GatedClaimer(self._gated_link, kinds, scope, worker_id, gates=self._gates, amends=amends)
        self._gated_first = False

    @property
    def rest(self) -> float:
        """Seconds after which another look is worth while, as far as is known here. 0: at once."""
        return 0.0 if self._open.look_again else self._gated.rest if self._gates.names else FOREVER

    def limits_changed(self) -> None:
        self._gates.doubt()

    async def claim(self, limit: int) -> list[Run]:
        """At most `limit` jobs."""
        if await self._gates.keep():
            self._open.look_everywhere()
        if not self._gates.names:
            return await self._open.claim(limit)
        self._gated_first = not self._gated_first
        first, second = (self._gated, self._open) if self._gated_first else (self._open, self._gated)
        runs = await first.claim(limit)
        try:
            return runs + (await second.claim(limit - len(runs)) if len(runs) < limit else [])
        except StoreUnavailable:
            if not runs:
                raise
            return runs  # they are ours, and must run; the outage will be met again

    async def close(self) -> None:
        await self._link.close()
        await self._gated_link.close()
