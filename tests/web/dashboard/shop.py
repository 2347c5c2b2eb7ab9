"""What tests do with the shop beside the browser."""

from __future__ import annotations

import asyncio
from typing import Any

from tenure import Tenure
from tests.waiting import until
from tests.web.serving import Server


class Shop:
    def __init__(self, app: Tenure, server: Server, gates: dict[str, asyncio.Event]) -> None:
        self.app = app
        self.server = server
        self._gates = gates

    @property
    def url(self) -> str:
        return f"{self.server.url}/"

    def page(self, route: str) -> str:
        return f"{self.url}#/{route}"

    async def start(self, kind: str, count: int = 1, more: dict[str, Any] | None = None, **options: Any) -> list[str]:
        """Enqueues jobs and gives their ids."""
        handles = [await self.app.enqueue(kind, {"order": n, **(more or {})}, **options) for n in range(count)]
        return [str(handle.id) for handle in handles]

    async def fulfil(self, order: int = 7) -> str:
        """A workflow that waits for its signal."""
        job_id = str((await self.app.enqueue("fulfil_order", {"order": order})).id)
        await self.until_open(job_id, "approve")
        return job_id

    async def until_open(self, job_id: str, step: str) -> None:
        """Waits until the workflow waits for this step."""

        async def look() -> list[str]:
            found = await self.app.workflows.get(job_id)
            return [one.name for one in found.waits]

        await until(look, is_=[step])

    async def export(self, name: str = "sales") -> str:
        return str((await self.app.enqueue("export_report", {"report": name})).id)

    async def reserve(self, order: int = 7) -> str:
        """A chain whose second link runs until `finish("ship 7")`."""
        chain_id = str((await self.app.enqueue("reserve_order", {"order": order})).id)

        async def look() -> list[str]:
            return [link.job.state.value for link in (await self.app.chains.get(chain_id)).links]

        await until(look, is_=["completed", "running"])
        return chain_id

    def finish(self, name: str = "sales") -> None:
        self._gates.setdefault(name, asyncio.Event()).set()

    async def state(self, job_id: str) -> str:
        job = await self.app.client().find(job_id)
        return "deleted" if job is None else job.state.value

    async def until_state(self, job_id: str, state: str) -> None:
        async def look() -> str:
            return await self.state(job_id)

        await until(look, is_=state)

    async def fail(self, count: int = 4) -> list[str]:
        """Dead letters of one cause, jobs in retry of another, and one that was refused."""
        dead = await self.start("render_invoice", count, {"template": "blue"})
        retry = await self.start("charge_card", count)
        [refused] = await self.start("refuse")
        for job_id in dead:
            await self.until_state(job_id, "dead_letter")
        for job_id in retry:
            await self.until_state(job_id, "retry")
        await self.until_state(refused, "failed")
        return dead
