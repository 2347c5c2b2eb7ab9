"""The statements of the web server go by index with any statistics: their cost does not grow with jobs and history."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from tenure.store import audit, failures, kinds, live, stats, tokens, workflows
from tests.store.database import Database
from tests.store.plans import MODES, STATES, Node, plan, prepare_tables

BOUNDED = {"jobs_queued", "jobs_limited", "jobs_due", "jobs_dead", "jobs_waiting", "jobs_pkey"}
"""Indexes of live jobs that the statements may read, each up to a limit or for one id."""

QUERIES = {
    "survey_fleet": stats.survey_fleet(10_000, 10_000),
    "find_failures": failures.find_all(datetime(2026, 1, 1, tzinfo=UTC), 5_000),
    "find_versions": live.find_versions([uuid4() for _ in range(10)]),
    "find_shown": live.find_shown([uuid4() for _ in range(10)], 1000),
    "watch": live.watch([uuid4()], 900.0),
    "find_token": tokens.find("x"),
    "list_audit": audit.list_all(before=audit.NEWEST, limit=50),
    "find_kind": kinds.find("x"),
    "list_workflows": workflows.list_newest(["work", "other"], queues=None, states=None, limit=50),
}


@pytest.fixture(
    scope="module", params=[pytest.param(state, marks=[] if "never" in state else pytest.mark.slow) for state in STATES]
)
def filled(request, server_dsn, template):
    from uuid import uuid4

    import psycopg
    from psycopg.conninfo import make_conninfo

    name = f"plans_{uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"create database {name} template {template}")
        with Database(make_conninfo(server_dsn, dbname=name)) as database:
            prepare_tables(database, request.param, 20_000)
            yield database
        admin.execute(f"drop database {name} with (force)")


def reads_jobs(node: Node) -> bool:
    return (node.relation or "").startswith(("jobs", "history"))


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("mode", ["hot"])
def test_a_statement_goes_by_index(filled, name, mode):
    for setting, value in MODES[mode].items():
        filled.sql(f"set {setting} = {value}")
    nodes = plan(filled, QUERIES[name])
    by_scan = [node.relation for node in nodes if node.type == "Seq Scan" and reads_jobs(node)]
    empty = {
        relation
        for relation in by_scan
        if relation and filled.sql("select pg_relation_size(%s::regclass)", f"tenure.{relation}") == [(0,)]
    }
    assert set(by_scan) - empty == set()
    assert {node.index for node in nodes if (node.relation or "") == "jobs"} <= BOUNDED
