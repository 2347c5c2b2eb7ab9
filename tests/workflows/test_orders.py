"""What happens at the same time: in every order of statements and commits, no wake-up is lost, and no stale run records."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tenure.store import blockers, events, jobs, steps, workflows
from tenure.store.query import Query
from tests.store.database import Database, claim_query, everything, finished
from tests.workflows.orders import Part, all_orders, play

SAMPLE, MANY = 20, 200
"""Orders that are played in `make test` and in `make proof`, evenly spread over all."""


@pytest.fixture(params=[SAMPLE, pytest.param(MANY, marks=pytest.mark.slow)])
def extent(request: pytest.FixtureRequest) -> Callable[[list[Any]], list[Any]]:
    def of(orders: list[Any]) -> list[Any]:
        return orders[:: max(1, len(orders) // request.param)]

    return of


EMPTY = "truncate tenure.jobs, tenure.claims, tenure.steps, tenure.events, tenure.waits, tenure.blocked, tenure.blockers,"
EMPTY += " tenure.chain_endings, tenure.watches, tenure.incidents; delete from tenure.history; delete from tenure.workers"


class SuspendedWorkflow:
    """A workflow that runs, and a leader."""

    def __init__(self, database: Database) -> None:
        self.database = database
        database.sql("delete from tenure.leases")
        self.term = database.term("resolver")
        self.stager = database.term("stager")

    def begin(self) -> None:
        self.database.connection.execute(EMPTY.encode(), prepare=False)
        self.worker = self.database.worker()
        [self.job] = self.database.enqueue({})
        self.claim_id = self.database.claim(self.worker).id

    def suspend(self, claim_id: str | None = None, **given: Any) -> Query[Any]:
        outcome = {"id": self.job, "claim_id": claim_id or self.claim_id, "steps": [], "waits": [], "chains": [], "missing": 0}
        return workflows.suspend(json.dumps([outcome | given]))

    def record(self, output: Any, claim_id: str | None = None) -> Query[Any]:
        step = {"id": self.job, "claim_id": claim_id or self.claim_id, "number": 1, "name": "a", "what": "step", "state": "done"}
        return steps.record(json.dumps([step | {"output": output, "ran": 0}]))

    @property
    def resolver(self) -> list[Part]:
        return [events.number(self.term, limit=10), None, events.wake(self.term, limit=10), None]

    @property
    def chain_resolver(self) -> list[Part]:
        term = self.term
        parts = (blockers.arm(term, limit=10), blockers.resolve(term, limit=10), blockers.unblock(term, limit=10))
        return [part for query in parts for part in (query, None)]

    def settle(self, script: list[Part], rounds: int = 2) -> None:
        """What the next rounds of the leader do, when all is quiet."""
        for _ in range(rounds):
            for part in script:
                if isinstance(part, Query):
                    self.database.run(part)

    def state(self) -> tuple[str, int]:
        [found] = self.database.sql("select state, sign(position)::int from tenure.jobs where id = %s", self.job)
        return found


@pytest.fixture
def workflow(database: Database) -> SuspendedWorkflow:
    return SuspendedWorkflow(database)


def emit(name: str, payload: int = 0) -> Query[Any]:
    return events.emit(json.dumps([{"name": name, "payload": payload}]))


def wait(after: int | None = None) -> dict[str, Any]:
    step = {"number": 1, "name": "paid", "what": "wait", "state": "open"}
    return {"steps": [step], "waits": [{"step": "paid", "event": "paid", "key": "", "after": after}]}


async def test_an_event_and_a_wait_find_each_other(dsn, workflow, extent):
    shape: list[list[Part]] = [[None] * 2, [None] * 2, [None] * 4]
    for order in extent(all_orders(shape)):
        workflow.begin()
        await play(dsn, [[workflow.suspend(**wait()), None], [emit("paid"), None], workflow.resolver], order)
        workflow.settle(workflow.resolver)
        assert workflow.state() == ("pending", 1), order


async def test_a_signal_reaches_a_workflow_that_is_about_to_sleep(dsn, workflow, extent):
    """It sleeps and waits at once. Its time comes, too, and the stager and the resolver both want to wake it."""
    promote: list[Part] = [jobs.promote(workflow.stager, limit=10), None]
    shape: list[list[Part]] = [[None] * 2] * 4
    for order in extent(all_orders(shape)):
        workflow.begin()
        nap = {"number": 2, "name": "nap", "what": "sleep", "state": "open", "seconds": 3600}
        both = wait()
        both["steps"].append(nap)
        await play(dsn, [[workflow.suspend(**both), None], [emit("paid"), None], promote, workflow.resolver[2:]], order)
        workflow.settle(workflow.resolver)
        assert workflow.state() == ("pending", 1), order


async def test_a_workflow_that_waits_again_is_not_taken_for_the_one_before(dsn, workflow, extent):
    """It was woken by time, runs, and waits again while the resolver still looks at its first wait."""
    shape: list[list[Part]] = [[None] * 4, [None] * 2, [None] * 4]
    for order in extent(all_orders(shape)):
        workflow.begin()
        workflow.database.run(workflow.suspend(**wait()))
        workflow.database.sql("update tenure.jobs set state = 'pending', position = nextval('tenure.job_position')")
        second = str(uuid4())
        claim = claim_query(workflow.worker, second, lanes=[everything()])
        again = [claim, None, workflow.suspend(second, **wait()), None]
        await play(dsn, [again, [emit("paid"), None], workflow.resolver], order)
        workflow.settle(workflow.resolver)
        assert workflow.state() == ("pending", 1), order


async def test_a_stream_misses_no_event_whichever_commits_first(dsn, workflow, extent):
    shape: list[list[Part]] = [[None] * 2, [None] * 2, [None] * 4, [None] * 2]
    for order in extent(all_orders(shape)):
        workflow.begin()
        stream = [workflow.suspend(**wait(after=0)), None]
        await play(dsn, [[emit("paid", 1), None], [emit("paid", 2), None], workflow.resolver, stream], order)
        first = workflow.database.run(events.find_next("paid", "", 0))
        after = first[0][1] if first else 0
        seen = [int(row[0]) for row in first]
        workflow.settle(workflow.resolver)
        while rows := workflow.database.run(events.find_next("paid", "", after)):
            seen.append(int(rows[0][0]))
            after = rows[0][1]
        assert sorted(seen) == [1, 2], order
        assert workflow.state() == ("pending", 1), order


async def test_a_run_that_lost_its_job_records_nothing_that_its_successor_did_not_see(dsn, workflow, extent):
    def load(_: Any) -> Query[Any]:
        return steps.load([workflow.job])

    shape: list[list[Part]] = [[None] * 2, [None] * 8]
    for order in extent(all_orders(shape)):
        workflow.begin()
        second = str(uuid4())
        workflow.database.condemn(workflow.worker)
        other = workflow.database.worker()
        new: list[Part] = [
            jobs.return_jobs(workflow.worker), None,
            claim_query(other, second, lanes=[everything()]), None,
            load, None,
            workflow.record("new", second), None,
        ]  # fmt: skip
        [_, successor] = await play(dsn, [[workflow.record("old"), None], new], order)
        held = len(successor.answers[1]) > 1
        recorded = [output for (output,) in workflow.database.sql("select output from tenure.steps")]
        if held:
            saw = bool(successor.answers[2])
            assert recorded == (["old"] if saw else ["new"]), order
        else:  # its predecessor's row was locked while the jobs were returned: it is left for the next round
            assert recorded in (["old"], []), order


async def test_the_end_of_a_child_and_a_workflow_that_begins_to_wait_for_it_find_each_other(dsn, workflow, extent):
    shape: list[list[Part]] = [[None] * 2, [None] * 2, [None] * 6]
    for order in extent(all_orders(shape)):
        workflow.begin()
        [child] = workflow.database.enqueue({})
        claim = workflow.database.claim(workflow.worker)
        chains = {"chains": [{"id": child, "number": -1}], "missing": 1}
        end: list[Any] = [jobs.finish(finished([(child, claim.id)])), None]
        sessions = await play(dsn, [[workflow.suspend(**chains), None], end, workflow.chain_resolver], order)
        if not sessions[1].answers[0]:  # the resolver has just marked the row: the settler writes again
            workflow.database.run(end[0])
        workflow.settle(workflow.chain_resolver, rounds=3)
        assert workflow.state() == ("pending", 1), order


async def test_a_cancellation_of_a_workflow_that_is_suspended_loses_nothing_to_undo(dsn, workflow, extent):
    shape: list[list[Part]] = [[None] * 4, [None] * 2]
    for order in extent(all_orders(shape)):
        workflow.begin()
        register = steps.record_rollback(workflow.job, workflow.claim_id, "undo", 1)
        cancel = jobs.cancel([workflow.job], error="canceled")
        await play(dsn, [[register, None, workflow.suspend(**wait()), None], [cancel, None]], order)
        rows = workflow.database.sql("select state, system ? 'canceling' from tenure.jobs")
        undo = workflow.database.sql("select count(*) from tenure.steps where what = 'on_rollback'") == [(1,)]
        # Canceled at once only if nothing was registered; a locked row is left to the next call.
        assert rows in ([], [("pending", True)], [("waiting", False)]), order
        assert rows or not undo, order
