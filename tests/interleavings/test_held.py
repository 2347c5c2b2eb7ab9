"""What a worker compares, what it claims and what it settles, in orders that are held still at one point."""

from __future__ import annotations

import asyncio

import pytest

from tenure.store.link import Link
from tenure.worker.claim import held_jobs as held
from tests.waiting import until
from tests.worker.serving import serving

CLAIM, COMPARE, DISOWN = "jobs/claim_jobs", "claims/list_held_jobs", "claims/disown_jobs"


class Statements:
    """Counts statements by name, and keeps the answer of a claim that took something back until it is released."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.kept = asyncio.Event()
        self.release = asyncio.Event()

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fetch = Link.fetch

        async def watched(link, query, **options):
            rows = await fetch(link, query, **options)
            self.counts[query.name] = self.counts.get(query.name, 0) + 1
            if query.name == CLAIM and any(row.job.id is not None for row in rows) and not self.kept.is_set():
                self.kept.set()
                await self.release.wait()
            return rows

        monkeypatch.setattr(Link, "fetch", watched)


@pytest.fixture
async def app(app):
    yield app
    await app.close()


async def test_jobs_of_a_claim_whose_answer_is_under_way_are_not_requeued(app, database, monkeypatch):
    monkeypatch.setattr(held, "BUSY_EVERY", 0.01)
    monkeypatch.setattr(held, "IDLE_EVERY", 0.0)
    statements = Statements()
    statements.watch(monkeypatch)
    ran = []

    @app.job
    async def work() -> None:
        ran.append(1)

    async with serving(app):
        await work.enqueue()
        await statements.kept.wait()
        before = statements.counts.get(COMPARE, 0)
        await until(lambda: statements.counts.get(COMPARE, 0) >= before + 3)
        assert database.sql("select state, fence from tenure.jobs") == [("running", 1)]
        statements.release.set()
        await until(lambda: database.sql("select state, fence from tenure.history"), is_=[("completed", 1)])
    assert ran == [1]
    assert DISOWN not in statements.counts
