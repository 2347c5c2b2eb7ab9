"""Random graphs of chains that wait for each other, in random order of runs and rounds of the resolver, compared with a model."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from tenure.store import chains, jobs
from tenure.store.jobs import FinishedRuns
from tests.chains.resolving import Resolving, resolving
from tests.store.database import Claim, Database

JOBS = 40
OUTCOMES = ["completed"] * 6 + ["failed", "dead_letter", "canceled"]


@dataclass
class Node:
    """A chain, and what is to become of it if it runs."""

    id: str
    after: list[Node]
    policy: str
    links: int
    outcome: str
    ran: list[str] = field(default_factory=list)

    def expected(self) -> str:
        """The state of its last link. It is known at once: the order of events must not matter."""
        ends = [node.expected() for node in self.after]
        unhappy = [end for end in ends if end not in ("completed", "blocked")]
        final = [end for end in unhappy if end != "dead_letter"]
        if (unhappy and self.policy == "cancel") or (final and self.policy == "wait"):
            return "canceled"
        if "blocked" in ends or (unhappy and self.policy == "wait"):
            return "blocked"
        return self.outcome


def graph(draw: random.Random) -> list[Node]:
    nodes: list[Node] = []
    for _ in range(JOBS):
        after = draw.sample(nodes, min(len(nodes), draw.choice([0, 0, 1, 1, 2, 5])))
        nodes.append(Node(str(uuid4()), after, draw.choice(["cancel", "run", "wait"]), draw.randint(1, 3), draw.choice(OUTCOMES)))
    return nodes


class Playing:
    def __init__(self, database: Database, resolver: Resolving, nodes: list[Node], draw: random.Random) -> None:
        self._database = database
        self._resolver = resolver
        self._draw = draw
        self._by_link = {node.id: node for node in nodes}
        self._worker = database.worker()
        self._waiting = list(nodes)

    async def play(self) -> None:
        """Until nothing is left to do."""
        idle = 0
        while idle < 3:
            act = self._draw.choice([self._enqueue, self._run, self._round, self._round])
            idle = 0 if await act() or self._waiting else idle + (await self._rest())

    async def _rest(self) -> int:
        return 0 if await self._run() + await self._resolver.settle() > 1 else 1

    async def _enqueue(self) -> int:
        count = self._draw.randint(1, 8)
        chosen, self._waiting = self._waiting[:count], self._waiting[count:]
        if chosen:
            self._database.enqueue(
                *({"id": node.id, "after": [other.id for other in node.after], "on_failure": node.policy} for node in chosen)
            )
        return len(chosen)

    async def _round(self) -> int:
        return await self._resolver.part(self._draw.choice(list(self._resolver.resolver.parts)))

    async def _run(self) -> int:
        claim = self._database.claim(self._worker, limit=self._draw.randint(1, 10))
        for job_id in claim.ids:
            self._settle(claim, job_id)
        return len(claim.ids)

    def _settle(self, claim: Claim, job_id: str) -> None:
        node = self._by_link[job_id]
        node.ran.append(job_id)
        if len(node.ran) < node.links:
            link = str(uuid4())
            self._by_link[link] = node
            outcomes = json.dumps({job_id: [claim.id, {"kind": "work", "id": link}]})
            assert self._database.fetch(chains.continue_jobs(FinishedRuns(f"{{{job_id}}}", f"{{{claim.id}}}", outcomes)))
        elif node.outcome == "dead_letter":
            outcome = [{"id": job_id, "claim_id": claim.id, "state": "dead_letter", "error": "broken"}]
            assert self._database.fetch(jobs.move(json.dumps(outcome)))
        else:
            assert self._database.fetch(jobs.finish(claim.finished(job_id, state=node.outcome, output=node.id)))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed >= 4 else []) for seed in range(24)])
async def test_every_graph_comes_to_the_end_that_the_model_tells(database, dsn, seed):
    draw = random.Random(seed)
    nodes = graph(draw)
    async with resolving(database, dsn) as resolver:
        resolver.resolver.batch = draw.choice([1, 3, 1000])
        await Playing(database, resolver, nodes, draw).play()
    tails = dict(
        database.sql("""
            select coalesce(chain_id, id)::text, state from tenure.history where next_id is null
            union all select coalesce(chain_id, id)::text, state from tenure.jobs""")
    )
    assert tails == {node.id: node.expected() for node in nodes}
    # Each link ran once, and only where it was to run.
    for node in nodes:
        assert len(set(node.ran)) == len(node.ran)
        assert len(node.ran) in (0, node.links)
    [(links,)] = database.sql("select count(*) from tenure.all_jobs")
    assert links == sum(max(1, len(node.ran)) for node in nodes)
