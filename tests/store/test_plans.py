"""The plans of the hot statements, under any statistics: a queue's statistics are always stale."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tenure.leader.duties.reaper import Contact, Reaper
from tenure.leader.duties.stager import Stager
from tenure.leader.requeue import requeue_jobs
from tenure.store import blockers, chains, claims, jobs, queues, reports, workers
from tenure.store.duty_link import DutyLink
from tenure.store.leases import Term
from tenure.store.query import Query
from tenure.store.queues import Wants
from tenure.store.target import DatabaseTarget
from tests.store.database import Database, claim_query, finished
from tests.store.plans import MODES, STATES, goes_by, plan, prepare_tables, walked
from tests.waiting import until

ROWS = 100_000

A, B = str(uuid4()), str(uuid4())
RUNS = json.dumps([{"id": A, "claim_id": B}, {"id": B, "claim_id": A, "state": "retry", "delay": 1}])
TERM = Term("stager", A, 1, 10.0)
LANES = [
    {"queue": "default", "high": 100, "low": 51, "start": 0},
    {"queue": "default", "high": 50, "low": 50, "start": 70_000},
    {"queue": "default", "high": 49, "low": 0, "start": 0},
]

POOLS = [Wants(pool="a", queues=["default", "mail"], kinds=["work"]), Wants(pool="b", queues=["mail"], kinds=["work"])]

# Statement, and the index it must go by.
HOT: dict[str, tuple[Query, str]] = {
    "claim": (claim_query(A, B, lanes=LANES), "jobs_queued"),
    "claim passing over": (claim_query(A, B, lanes=LANES).passing_over(f"{{{A}}}"), "jobs_queued"),
    "finish": (jobs.finish(finished([(A, B), (B, A)])), "jobs_pkey"),
    "move": (jobs.move(RUNS), "jobs_pkey"),
    "check": (claims.check(RUNS), "jobs_pkey"),
    "find settled": (jobs.find_settled(RUNS), "id"),
    "survey": (queues.survey('["default", "mail"]', '{"work"}'), "jobs_queued"),
    "renew": (workers.renew([A, B], ["default"], 15.0), "jobs_suspect"),
    "return": (jobs.return_jobs(None), "claims_worker"),
    "forget claims": (claims.forget(A, [B]), "jobs_pkey"),
    "list held": (claims.list_held(A), "claims_worker"),
    "promote": (jobs.promote(TERM, limit=1000), "jobs_due"),
    "expire": (jobs.expire(TERM, limit=500, max_crashes=3), "jobs_leased"),
    "condemn": (workers.condemn_expired(TERM, reap=True), "jobs_leased"),
    "find": (jobs.find(A), "jobs_pkey"),
    "continue": (chains.continue_jobs(finished([(A, B), (B, A)])), "jobs_pkey"),
    "complete": (chains.complete({UUID(A): "1"}, by=None), "jobs_pkey"),
    "find tail": (chains.find_tail(A), "jobs_chain"),
    "find links": (chains.find_links([UUID(A)], most=10), "jobs_chain"),
    "find dependants": (chains.find_dependants([UUID(A)]), "jobs_pkey"),
    "resolver work, unarmed": (blockers.find_resolver_work(TERM), "blockers_unarmed"),
    "resolver work, endings": (blockers.find_resolver_work(TERM), "chain_endings_unresolved"),
    "resolver work, released": (blockers.find_resolver_work(TERM), "blocked_ready"),
    "resolver work, events": (blockers.find_resolver_work(TERM), "events_unseen"),
    "resolver work, waits": (blockers.find_resolver_work(TERM), "waits_unchecked"),
    "arm": (blockers.arm(TERM, limit=1000), "jobs_chain"),
    "arm, found": (blockers.arm(TERM, limit=1000), "blockers_unarmed"),
    "resolve": (blockers.resolve(TERM, limit=1000), "chain_endings_unresolved"),
    "resolve, told": (blockers.resolve(TERM, limit=1000), "blockers_open"),
    "unblock": (blockers.unblock(TERM, limit=1000), "blocked_ready"),
    "end blocked": (blockers.end_blocked(TERM, limit=1000), "blocked_ready"),
    "find blockers": (blockers.find(A, most=100), "blockers_job"),
    "demand": (queues.measure_demand(POOLS, look=1080), "jobs_queued"),
}


@pytest.fixture(scope="module")
def prepared_dsn(server_dsn: str, template: str) -> Iterator[Callable[[str], str]]:
    """A database in the asked condition, made once."""
    made: dict[str, str] = {}

    def of(condition: str) -> str:
        if condition not in made:
            name = f"plans_{uuid4().hex[:12]}"
            admin.execute(f"create database {name} template {template}")
            made[condition] = make_conninfo(server_dsn, dbname=name)
            with Database(made[condition]) as database:
                prepare_tables(database, condition, ROWS)
        return made[condition]

    with ExitStack() as stack:
        admin = stack.enter_context(psycopg.connect(server_dsn, autocommit=True))
        yield of
        for dsn in made.values():
            admin.execute(f"drop database {psycopg.conninfo.conninfo_to_dict(dsn)['dbname']} with (force)")


def faults(database: Database, names: Iterable[str]) -> list[str]:
    found = []
    for name in names:
        query, index = HOT[name]
        nodes = plan(database, query)
        found += [f"{name}: walks all of {relation}" for relation in walked(database, nodes)]
        if not goes_by(nodes, index):
            found.append(f"{name}: goes by {sorted({node.index for node in nodes if node.index})}, not by {index}")
    return found


@pytest.mark.parametrize("condition", STATES)
def test_on_our_own_connections_every_hot_statement_goes_by_its_index(prepared_dsn, condition):
    with Database(prepared_dsn(condition), **MODES["hot"]) as database:
        assert faults(database, HOT) == []


@pytest.mark.slow
@pytest.mark.parametrize("condition", [condition for condition in STATES if condition != "empty"])
def test_behind_a_pooler_the_statements_of_workers_go_by_their_index_as_well(prepared_dsn, condition):
    """Without any setting of ours. Those of the reaper are another matter: see the test of its own connection below."""
    with Database(prepared_dsn(condition), **MODES["pooled"]) as database:
        assert (
            faults(
                database,
                ("claim", "claim passing over", "finish", "move", "check", "survey", "renew", "promote", "find", "demand"),
            )
            == []
        )


@pytest.mark.parametrize("which", ["healthy", "suspects", "all"])
@pytest.mark.parametrize("mode", MODES)
def test_every_claim_uses_an_index_of_pending_jobs(prepared_dsn, mode, which):
    with Database(prepared_dsn("analysed when every job was a dead letter, then filled"), **MODES[mode]) as database:
        nodes = plan(database, claim_query(A, B, lanes=LANES, which=which))
        assert walked(database, nodes) == []
        assert goes_by(nodes, "jobs_queued") or goes_by(nodes, "jobs_suspect")


@pytest.mark.parametrize("condition", [condition for condition in STATES if condition != "empty"])
def test_held_workflows_are_counted_by_an_index_of_nothing_else(prepared_dsn, condition):
    with Database(prepared_dsn(condition), **MODES["hot"]) as database:
        assert {node.index for node in plan(database, reports.count_held_workflows()) if node.relation == "jobs"} == {"jobs_held"}


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("condition", [condition for condition in STATES if condition != "empty"])
def test_an_enqueue_walks_over_no_table(prepared_dsn, condition, again):
    with Database(prepared_dsn(condition)) as database, database.connection.transaction(force_rollback=True):
        known = database.sql("select id::text from tenure.history limit 1")[0][0]
        text = json.dumps([{"id": known, "kind": "work"}, {"id": str(uuid4()), "kind": "work"}])
        database.sql("select tenure.enqueue(%s, %s)", text, again)
        database.sql("select tenure.enqueue(%s, %s)", json.dumps([{"id": str(uuid4()), "kind": "work"}]), again)
        assert database.sql("select relname from pg_stat_xact_user_tables where schemaname = 'tenure' and seq_tup_read > 1") == []


JOBS_STATISTICS = "pg_stat_user_tables where schemaname = 'tenure' and relname = 'jobs'"


async def test_plans_that_the_leader_made_on_an_empty_table_do_not_walk_it_once_it_is_full(fresh_dsn):
    """The leader's connection lives for days and its statements are planned once: not by the look of an empty table."""
    link = DutyLink(DatabaseTarget.at(fresh_dsn))
    database = Database(fresh_dsn)
    stager, reaper = Stager(), Reaper(Contact())
    terms = {duty.name: database.term(duty.name) for duty in (stager, reaper)}
    try:
        for _ in range(8):  # PostgreSQL settles for a generic plan after five
            for duty in (stager, reaper):
                await duty.run_once(link, terms[duty.name])
            await requeue_jobs(link, None)
        with Database(fresh_dsn) as other:
            prepare_tables(other, "never analysed, filled", 20_000)
        # A session reports its statistics when it ends, at the latest: from here on, those of the preparation do not change.
        await until(lambda: database.sql(f"select n_tup_ins >= 20000 from {JOBS_STATISTICS}"), is_=[(True,)])
        [(before,)] = database.sql(f"select seq_tup_read from {JOBS_STATISTICS}")
        for duty in (stager, reaper):
            await duty.run_once(link, terms[duty.name])
        await requeue_jobs(link, None)
    finally:
        await link.close()
    await until(
        lambda: database.sql(
            "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'tenure leader'"
        ),
        is_=[(0,)],
    )
    assert database.sql(f"select seq_tup_read from {JOBS_STATISTICS}") == [(before,)]
    database.connection.close()
