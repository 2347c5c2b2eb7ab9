"""The plans of the statements that people wait for, on connections without any setting of ours.

Statements that use keys do so under any statistics. Walks over a whole table may be planned as a sort of it while it is
small or seems so; with the settings of our own links, and with statistics that are true, they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tenure.client.filters import FIRST_ID, LAST_ID, Filters
from tenure.store import cleaning, jobs, leases, lists, queues, reports, workers
from tenure.store.leases import Term
from tenure.store.query import Query
from tests.client.stock import lay_out
from tests.store.database import Database
from tests.store.plans import MODES as SETTINGS
from tests.store.plans import STATES, goes_by, plan, prepare_tables, walked

pytestmark = pytest.mark.slow

ROWS = 100_000
A, B = uuid4(), uuid4()
MODES = ("force_generic_plan", "force_custom_plan")
WALKS = ("live", "live, filtered", "finished", "finished, filtered")
CONDITIONS = [condition for condition in STATES if condition.startswith(("never", "drained", "analysed when"))]


def values(**words) -> lists.Values:
    filters = Filters.of(**words)
    return {**filters.values(filters.states), "before": str(LAST_ID), "floor": str(FIRST_ID), "limit": 51}


# Statement, and the index it must go by.
ASKED: dict[str, tuple[Query, str]] = {
    "live": (lists.live(values()), "jobs_pkey"),
    "live, filtered": (lists.live(values(kind="work", state="pending", queue="default")), "jobs_pkey"),
    "held": (lists.held(values(state="running")), "jobs_pkey"),
    "dead": (lists.dead(values(state="dead_letter"), ["work"]), "jobs_dead"),
    "keyed": (lists.keyed(values(key="a"), ["work"]), "keys_pkey"),
    "children": (lists.children(values(parent=A)), "jobs_parent"),
    "finished": (lists.finished(values()), "id"),
    "finished, filtered": (lists.finished(values(priority=50, input={"a": 1})), "id"),
    "finished kinds": (lists.finished_kinds(values(), ["work", "other"]), "kind_id"),
    "finished children": (lists.finished_children(values(parent=A)), "parent_id"),
    "not completed": (lists.not_completed(values(state=["failed", "canceled"])), "state_id"),
    "kinds of dead": (lists.kinds_of_dead(), "jobs_dead"),
    "kinds of finished": (lists.kinds_of_finished(), "kind_id"),
    "kinds with keys": (lists.kinds_with_keys(), "keys_pkey"),
    "find": (jobs.find_all([A, B]), "jobs_pkey"),
    "cancel": (jobs.cancel([A, B], error=""), "jobs_pkey"),
    "cancel by state": (jobs.cancel([A, B], error="", states=["pending"]), "jobs_pkey"),
    "retry": (jobs.retry(A, None), "jobs_pkey"),
    "retry finished": (jobs.retry_finished(A, B, None), "id"),
    "replay": (jobs.replay([A, B]), "jobs_pkey"),
    "delete": (jobs.delete([A, B]), "jobs_pkey"),
    "explain": (reports.explain(A), "jobs_queued"),
    "workers": (workers.find_all(), "claims_worker"),
}

# By the leader, on a link with our settings.
TERM = Term("cleaner", str(A), 1, 60.0)
CARE: dict[str, tuple[Query, str]] = {
    "merge tallies": (cleaning.merge_tallies(TERM, limit=100), "counters_pkey"),
    "clean keys": (cleaning.clean_keys(TERM, limit=100), "keys_expires"),
    "clean progress": (cleaning.clean_progress(TERM, limit=100, keep=60.0), "progress_began"),
    "clean logs": (cleaning.clean_logs(TERM, limit=100, keep=60.0), "logs_at"),
    "clean incidents": (cleaning.clean_incidents(TERM, limit=100, keep=60.0), "incidents_at"),
    "clean counters": (cleaning.clean_counters(TERM, limit=100, keep=60.0), "counters_pkey"),
    "clean minutes": (cleaning.clean_minutes(TERM, limit=100), "minutes_pkey"),
    "clean fleet minutes": (cleaning.clean_fleet_minutes(TERM, limit=100), "fleet_minutes_pkey"),
    "clean latencies": (cleaning.clean_latencies(TERM, limit=100, keep=60.0), "latencies_pkey"),
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
                if condition == "true":
                    # It is a table of one page here. Analyzed by chance, it would be read whole, and rightly.
                    database.sql("alter table tenure.claims set (autovacuum_enabled = false)")
                    lay_out(database, ROWS + ROWS // 3)  # a fourth of them live
                    database.sql("analyze tenure.jobs")
                    database.sql("analyze tenure.history")
                else:
                    prepare_tables(database, condition, ROWS)
        return made[condition]

    with ExitStack() as stack:
        admin = stack.enter_context(psycopg.connect(server_dsn, autocommit=True))
        yield of
        for dsn in made.values():
            admin.execute(f"drop database {conninfo_to_dict(dsn)['dbname']} with (force)")


def faults(database: Database, names: Iterable[str]) -> list[str]:
    found = []
    for name in names:
        query, index = {**ASKED, **CARE}[name]
        nodes = plan(database, query)
        found += [f"{name}: walks all of {relation}" for relation in walked(database, nodes)]
        if not (goes_by(nodes, index) or goes_by(nodes, f"{index}_id")):
            found.append(f"{name}: goes by {sorted({node.index for node in nodes if node.index})}, not by {index}")
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_statements_use_their_keys_under_any_statistics(prepared_dsn, condition, mode):
    with Database(prepared_dsn(condition), plan_cache_mode=mode) as database:
        assert faults(database, ASKED.keys() - set(WALKS)) == []


@pytest.mark.parametrize("condition", CONDITIONS)
def test_with_our_settings_walks_go_by_the_ids_as_well(prepared_dsn, condition):
    with Database(prepared_dsn(condition), **SETTINGS["hot"]) as database:
        assert faults(database, ASKED) == []
        assert faults(database, CARE.keys() - {"merge tallies"}) == []
        assert walked(database, plan(database, CARE["merge tallies"][0])) == []


@pytest.mark.parametrize("mode", MODES)
def test_with_true_statistics_all_go_by_their_indexes(prepared_dsn, mode):
    with Database(prepared_dsn("true"), plan_cache_mode=mode) as database:
        assert faults(database, ASKED) == []
        nodes = plan(database, lists.finished_keyed(values(key="key0"), ["kind0"]))
        assert goes_by(nodes, "kind_key") or goes_by(nodes, "kind_key_id")
        assert walked(database, nodes) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["live", "finished", "finished kinds", "not completed", "dead"])
def test_a_look_is_not_sorted_so_that_it_ends_with_the_page(prepared_dsn, name, mode):
    """Sorted are only the few ids that were found."""
    with Database(prepared_dsn("true"), plan_cache_mode=mode) as database:
        nodes = plan(database, ASKED[name][0])
        first_scan = next(place for place, node in enumerate(nodes) if (node.relation or "").startswith(("jobs", "history")))
        assert "Limit" in [node.type for node in nodes[:first_scan]]
        assert "Sort" not in [node.type for node in nodes[:first_scan]]


def test_counts_do_not_look_at_history(prepared_dsn):
    with Database(prepared_dsn("true")) as database:
        for query in (reports.count_live(), reports.count_finished(), queues.find_all(), leases.find_leaders()):
            assert not [node for node in plan(database, query) if (node.relation or "").startswith("history")]
