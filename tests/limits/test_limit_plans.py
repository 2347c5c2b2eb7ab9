"""The plans of the statements of limits, under any statistics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tenure.store import limits
from tenure.store.query import Query
from tests.store.database import Database, claim_query
from tests.store.plans import MODES, STATES, goes_by, plan, prepare_tables, walked

pytestmark = pytest.mark.slow

ROWS = 100_000
A, B = str(uuid4()), str(uuid4())
LANES = [{"ordinal": 0, "queue": "default", "high": 100, "low": 0, "start": 70_000}]
QUEUES = json.dumps([{"queue": "default", "after": "kind:work/tenant_id=3"}, {"queue": "mail", "after": ""}])

# Half of the jobs are in limit groups.
LIMITED = """
    insert into tenure.limits (name, declared) values
        ('kind:work', '{"concurrency": 5000, "concurrency_per_key": 500, "rate": [10, 60], "key": "tenant_id"}'),
        ('queue:mail', '{"rate_per_key": [10, 60], "key": "tenant_id"}');
    update tenure.jobs set limit_group = 'kind:work/tenant_id=' || abs(hashtext(id::text) / 2) % 50
     where hashtext(id::text) % 2 = 0;
    update tenure.jobs set held_group = limit_group where state = 'running';
    insert into tenure.starts (limit_group, began, ended, forget_at, jobs)
    select 'kind:work/tenant_id=' || n % 1000, now() - n * interval '1 s', now(), now(), 1 from generate_series(1, 20000) n;
"""

CLAIM = limits.claim(
    worker_id=A,
    claim_id=B,
    locked=["kind:work"],
    queues=QUEUES,
    steps=100,
    limit=10,
    kinds='{"work"}',
    capabilities="{}",
    leases="{}",
    which="all",
)

# Statement, and the indexes it must go by.
HOT: dict[str, tuple[Query, set[str]]] = {
    "lock": (limits.lock(["kind:work", "queue:mail"], ["default", "mail"]), {"jobs_limited", "jobs_limited_held"}),
    "claim": (CLAIM, {"jobs_limited", "jobs_limited_held", "starts_pkey"}),
    "claim passing over": (CLAIM.passing_over(f"{{{A}}}"), {"jobs_limited", "jobs_limited_held", "starts_pkey"}),
    "adopt": (limits.adopt(json.dumps(LANES), kinds=["work"], queues=["mail"], limit=100), {"jobs_queued"}),
    "adopt held": (limits.adopt_held(A), {"claims_worker", "jobs_pkey"}),
    "regroup": (limits.regroup(["default", "mail"], limit=100), {"jobs_limited"}),
    "learn": (limits.learn(["default", "mail"]), {"jobs_limited"}),
    "ordinary claim": (claim_query(A, B, lanes=[{"queue": "default", "high": 50, "low": 50, "start": 70_000}]), {"jobs_queued"}),
}


@pytest.fixture(scope="module")
def prepared_dsn(server_dsn: str, template: str) -> Iterator[Callable[[str], str]]:
    """A database in the asked condition, made once."""
    made: dict[str, str] = {}

    def of(condition: str) -> str:
        if condition not in made:
            name = f"limits_{uuid4().hex[:12]}"
            admin.execute(f"create database {name} template {template}")
            made[condition] = make_conninfo(server_dsn, dbname=name)
            with Database(made[condition]) as database:
                prepare_tables(database, condition, ROWS)
                if condition != "empty":
                    database.connection.execute(LIMITED.encode(), prepare=False)
        return made[condition]

    with ExitStack() as stack:
        admin = stack.enter_context(psycopg.connect(server_dsn, autocommit=True))
        yield of
        for dsn in made.values():
            admin.execute(f"drop database {conninfo_to_dict(dsn)['dbname']} with (force)")


def faults(database: Database) -> list[str]:
    found = []
    for name, (query, indexes) in HOT.items():
        nodes = plan(database, query)
        used = sorted({node.index for node in nodes if node.index})
        found += [f"{name}: walks all of {relation}" for relation in walked(database, nodes)]
        found += [f"{name}: goes by {used}, not by {index}" for index in indexes if not goes_by(nodes, index)]
        found += [f"{name}: walks all of starts" for node in nodes if node.relation == "starts" and node.from_end_to_end]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("condition", STATES)
def test_on_our_own_connections_every_statement_goes_by_its_index(prepared_dsn, condition):
    with Database(prepared_dsn(condition), **MODES["hot"]) as database:
        assert faults(database) == []


@pytest.mark.parametrize("condition", [condition for condition in STATES if condition != "empty"])
def test_behind_a_pooler_claims_go_by_their_index_as_well(prepared_dsn, condition):
    """Without any setting of ours."""
    with Database(prepared_dsn(condition), **MODES["pooled"]) as database:
        for name in ("lock", "claim"):
            assert walked(database, plan(database, HOT[name][0])) == [], name


@pytest.mark.parametrize("condition", ["never analysed, filled", "analysed when every job was a dead letter, then filled"])
def test_a_claim_among_many_is_over_in_no_time(prepared_dsn, condition):
    """50 limit groups with a thousand jobs each, and 20 000 starts."""
    with Database(prepared_dsn(condition), **MODES["hot"]) as database, database.connection.transaction(force_rollback=True):
        database.sql("update tenure.workers set id = %s where pid = 1", A)
        database.sql("set local statement_timeout = '300ms'")
        database.run(HOT["lock"][0])
        database.run(CLAIM)
