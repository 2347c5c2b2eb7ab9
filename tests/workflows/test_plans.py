"""The plans of the statements about workflows, with statistics that are missing, wrong or right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tenure.store import cleaning, events, steps, workflows
from tenure.store.leases import Term
from tenure.store.query import Query
from tests.store.database import Database
from tests.store.plans import MODES, goes_by, plan, prepare_tables

A, B = str(uuid4()), str(uuid4())
TERM = Term("resolver", A, 1, 10.0)
STEP = {"id": A, "claim_id": B, "number": 1, "name": "a", "what": "step", "state": "done", "output": 1, "ran": 0}
OUTCOME = {
    "id": A, "claim_id": B, "steps": [{"number": 1, "name": "a", "what": "wait", "state": "open"}],
    "waits": [{"step": "a", "event": "paid", "key": ""}], "chains": [{"id": B, "number": -1}], "missing": 1,
}  # fmt: skip

# Statement, and the index it must go by.
HOT: dict[str, tuple[Query, str]] = {
    "record": (steps.record(json.dumps([STEP])), "jobs_pkey"),
    "record in a transaction": (steps.record_in_transaction(steps.StepResult(A, B, "a", 1, "1", 1), "7"), "jobs_pkey"),
    "record a rollback": (steps.record_rollback(A, B, "a", 1), "jobs_pkey"),
    "forget": (steps.forget(A, B, ["a"]), "steps_pkey"),
    "load": (steps.load([A, B]), "steps_pkey"),
    "status": (steps.find_status(A), "steps_pkey"),
    "suspend": (workflows.suspend(json.dumps([OUTCOME])), "jobs_pkey"),
    "resume": (workflows.resume(UUID(A)), "jobs_pkey"),
    "fork": (workflows.fork(UUID(A), UUID(B), step="a"), "steps_pkey"),
    "list steps": (workflows.list_steps(UUID(A)), "steps_pkey"),
    "find": (events.find("paid", ""), "events_stream"),
    "find next": (events.find_next("paid", "", 5), "events_stream"),
    "signal": (events.signal(A, "paid", "1", None), "jobs_pkey"),
    "place": (events.number(TERM, limit=100), "events_unseen"),
    "wake": (events.wake(TERM, limit=100), "waits_unchecked"),
    "clean steps": (cleaning.clean_steps(TERM, limit=100, keep=60.0), "steps_pkey"),
    "clean events": (cleaning.clean_events(TERM, limit=100, keep=60.0), "events_at"),
}

FILL = """
    insert into tenure.steps (job_id, name, number, what, state, output, fence)
    select md5('job ' || n / 10)::uuid, 'step ' || n % 10, n % 10, 'step', 'done', '1', 1 from generate_series(1, 50000) n;
    insert into tenure.events (name, key, payload, position)
    select 'paid', n::text, '1', n from generate_series(1, 50000) n;
    insert into tenure.events (name, key, payload) values ('paid', 'new', '1');
    insert into tenure.waits (job_id, step, event, key, fence, checked)
    select md5('job ' || n)::uuid, 'paid', 'paid', n::text, 1, n > 1 from generate_series(1, 50000) n;
"""
ANALYZE = "analyze tenure.steps; analyze tenure.events; analyze tenure.waits; analyze tenure.jobs; analyze tenure.history;"
CONDITIONS = {"never analysed": FILL, "analysed while empty": ANALYZE + FILL, "analysed": FILL + ANALYZE}
PAGE = 8192
OURS = ("jobs", "history", "steps", "events", "waits", "blockers")


@pytest.fixture(scope="module", params=CONDITIONS)
def filled(request: pytest.FixtureRequest, server_dsn: str, template: str) -> Iterator[str]:
    name = f"plans_{uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"create database {name} template {template}")
        dsn = make_conninfo(server_dsn, dbname=name)
        with Database(dsn) as database:
            prepare_tables(database, "never analysed, filled", 20_000)
            database.connection.execute(CONDITIONS[request.param].encode(), prepare=False)
        yield dsn
        admin.execute(f"drop database {name} with (force)")


def test_every_statement_goes_by_its_index_and_walks_over_no_table(filled):
    with Database(filled, **MODES["hot"]) as database:
        found = []
        for name, (query, index) in HOT.items():
            nodes = plan(database, query)
            # The partial indexes of what is unseen or unchecked contain nothing else.
            whole = [node for node in nodes if node.from_end_to_end and node.index != index]
            walked = {node.relation or "" for node in whole if (node.relation or "").startswith(OURS)}
            found += [f"{name} walks over {relation}" for relation in walked if is_large(database, relation)]
            if not goes_by(nodes, index):
                found.append(f"{name} goes by {sorted({node.index for node in nodes if node.index})}, not by {index}")
        assert found == []


def is_large(database: Database, relation: str) -> bool:
    [(size,)] = database.sql("select pg_relation_size(%s::regclass)", f"tenure.{relation}")
    return bool(size > PAGE)
