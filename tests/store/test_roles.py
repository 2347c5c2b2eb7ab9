"""What `tenure sql --roles` grants is enough, and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import psycopg
import pytest

from tenure.model.wakeup import Wakeup
from tenure.store import (
    audit,
    blockers,
    claims,
    cleaning,
    events,
    failures,
    history,
    jobs,
    kinds,
    late_outputs,
    leases,
    limits,
    live,
    queues,
    reports,
    schedules,
    stats,
    tokens,
    workers,
)
from tenure.store.claims import HeldJob
from tenure.store.migrator import migrations, roles_sql
from tenure.store.query import Query
from tenure.store.queues import Wants
from tests.limits.limits_database import limited_claim_query
from tests.store.database import Database, claim_query, everything, finished

TABLES = ("jobs", "history", "workers", "leases", "queues", "migrations", "limits", "limit_changes", "starts")


@pytest.fixture
def owner(server_dsn: str, fresh_dsn: str) -> Iterator[Database]:
    with Database(fresh_dsn) as database, Database(server_dsn, statement_timeout="0") as server:
        # Roles belong to the whole server, where other test processes may want the same.
        server.sql("select pg_advisory_lock(hashtext('the roles of tenure'))")
        for role in ("worker", "enqueue", "read"):
            database.sql(f"drop role if exists tenure_{role}")
        database.connection.execute(roles_sql("tenure").encode(), prepare=False)
        yield database
        database.sql("reset role; drop owned by tenure_worker, tenure_enqueue, tenure_read")
        database.sql("drop role tenure_worker, tenure_enqueue, tenure_read")


def become(database: Database, role: str) -> None:
    database.sql(f"set role tenure_{role}")


def test_a_role_that_may_only_enqueue_can_do_that_and_nothing_else(owner):
    become(owner, "enqueue")
    [job_id] = owner.enqueue({"input": {"secret": 1}})
    assert job_id
    owner.run(jobs.enqueue_one('{"kind": "work"}'))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        owner.sql("select * from tenure.all_jobs")
    for table in TABLES:
        for statement in (f"select * from tenure.{table}", f"delete from tenure.{table}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                owner.sql(statement)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        owner.sql("select tenure.make_history(0)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        owner.sql("select nextval('tenure.job_position')")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        owner.sql("create table tenure.mine (id int)")


def test_a_role_that_may_only_enqueue_can_create_groups_and_send_events(owner):
    become(owner, "enqueue")
    [group_id] = owner.enqueue({"kind": "tenure.group", "after": [], "open": True, "on_failure": "run"})
    [member] = owner.enqueue({"dependants": True})
    for _ in range(2):  # as after a lost answer
        assert owner.fetch(blockers.add_members(group_id, [UUID(member)], expected=0)) == [1]
    assert owner.fetch(blockers.add_members(group_id, [uuid4()], expected=0)) == []
    assert owner.fetch(blockers.close_group(group_id)) == [1]
    assert owner.fetch(blockers.close_group(group_id)) == []
    owner.run(events.emit('[{"name": "paid"}]'))
    owner.sql("reset role")
    assert owner.sql("select total, missing, open from tenure.blocked") == [(1, 1, False)]


def test_repeating_an_enqueue_shows_a_role_that_may_only_enqueue_nothing_but_ids_of_other_jobs(owner):
    [job_id] = owner.enqueue({"input": {"secret": 1}})
    become(owner, "enqueue")
    assert owner.sql("select * from tenure.enqueue(%s, true)", json.dumps([{"id": job_id, "kind": "work"}]))[0][1] is True


def test_a_role_that_may_only_read_sees_all_and_writes_nothing(owner):
    owner.enqueue({})
    become(owner, "read")
    assert owner.sql("select count(*) from tenure.all_jobs") == [(1,)]
    assert owner.sql("select tenure.backlog()") == [(1,)]
    for table in TABLES:
        owner.sql(f"select * from tenure.{table}")
        for statement in (f"delete from tenure.{table}", f"truncate tenure.{table}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                owner.sql(statement)
    for call in (
        'tenure.enqueue(\'[{"kind": "work"}]\')',
        "tenure.make_history(0)",
        "nextval('tenure.job_position')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            owner.sql(f"select {call}")


def statements(worker: str, holder: str) -> list[Query]:
    """All that a worker, its supervisor and its leader run."""
    outcomes = json.dumps([{"id": worker, "claim_id": holder}])
    term = leases.Term("stager", holder, 1, 10.0)
    return [
        claim_query(worker, holder, lanes=[everything()]),
        jobs.finish(finished([(worker, holder)])),
        jobs.move(outcomes),
        jobs.find_settled(outcomes),
        claims.check(outcomes),
        claims.list_held(worker),
        claims.disown([HeldJob(worker, holder)], ["default"]),
        claims.forget(worker, [holder]),
        jobs.find(worker),
        queues.survey('["default"]', "{work}"),
        queues.measure_demand([Wants(pool="p", queues=["default"], kinds=["work"])], look=10),
        workers.renew([worker], ["default"], 10.0),
        workers.condemn(worker, holder, "crashed"),
        jobs.return_jobs(worker),
        leases.acquire(holder, [("stager", 10.0)]),
        jobs.promote(term, limit=10),
        workers.condemn_expired(term, reap=True),
        workers.condemn_unknown(term),
        jobs.expire(term, limit=10, max_crashes=3),
        history.drop(term, keep=86400.0),
        history.make(term, days_ahead=8),
        leases.check(term),
        leases.beat(holder, []),
        leases.lock(7),
        history.clean(term, limit=10, keep=86400.0),
        history.clean_default(term, limit=10, keep=86400.0),
        cleaning.merge_tallies(term, limit=10),
        cleaning.clean_counters(term, limit=10, keep=86400.0),
        cleaning.clean_minutes(term, limit=10),
        cleaning.clean_fleet_minutes(term, limit=10),
        stats.record_fleet(term, 10),
        cleaning.clean_latencies(term, limit=10, keep=86400.0),
        cleaning.clean_watches(term, limit=10),
        cleaning.clean_audit(term, limit=10, keep=86400.0),
        cleaning.clean_dead(term, limit=10, keep=86400.0),
        cleaning.clean_keys(term, limit=10),
        cleaning.clean_progress(term, limit=10, keep=86400.0),
        cleaning.clean_logs(term, limit=10, keep=86400.0),
        cleaning.clean_incidents(term, limit=10, keep=86400.0),
        schedules.declare_app(holder, "shop:app", kinds=["work"], schedules=["s"]),
        schedules.reconcile("shop:app", [], supervisor_id=holder, kinds=["work"]),
        schedules.retire(term),
        schedules.rewind(term),
        schedules.withdraw_app(holder),
        history.declare_retentions({"work": 60.0}),
        reports.probe_history(),
        reports.probe_indexes(),
        reports.probe_tables(),
        reports.probe_sessions(60.0),
        reports.probe_slots(),
        reports.probe_settings(["fsync"]),
        reports.find_paused(),
        reports.find_stranded(30.0),
        reports.count_dead_letters(),
        reports.count_held_by_unknown(),
        reports.count_held_workflows(),
        reports.probe_server(),
        reports.find_migrations(),
        reports.find_old_workers(1),
        leases.release(holder, [term]),
        limits.declare({"kind:work": {"concurrency": 5}}),
        limits.learn(["default"]),
        limits.adopt("[]", kinds=["work"], queues=[], limit=10),
        limits.adopt_held(worker),
        limits.regroup(["default"], limit=10),
        limits.lock(["kind:work"], ["default"]),
        limited_claim_query(worker, holder, ["kind:work"]),
        late_outputs.owe_output(str(uuid4()), 60.0),
        late_outputs.drop_owed_output(str(uuid4())),
        late_outputs.find_late_output(str(uuid4())),
        queues.notify("tenure", [Wakeup.new_jobs("x")]),
        kinds.declare("shop:app", {"work": {"queue": "default"}}),
    ]


def web_statements() -> list[Query]:
    """All that the web server runs besides."""
    token = tokens.NewToken(id=uuid4(), hash="x", name="x", scope="read")
    entry = audit.AuditEntry(request_id=str(uuid4()), phase="requested", actor="x", ip=None, source="api", action="x")
    return [
        kinds.find_all(),
        kinds.find("work"),
        tokens.create(token),
        tokens.find("x"),
        tokens.touch(token.id),
        tokens.list_all(limit=10, revoked=True),
        tokens.revoke("x", None),
        tokens.exist(),
        tokens.clean_sessions(),
        tokens.create_signing_key(uuid4(), "x"),
        tokens.find_signing_keys(),
        audit.write([entry]),
        audit.list_all(before=audit.NEWEST, limit=10),
        live.find_versions([uuid4()]),
        live.find_shown([uuid4()], 1000),
        live.watch([uuid4()], 10.0),
        stats.survey_fleet(10, 10),
        stats.count_buckets(),
        stats.count_series(3600.0, 60.0, None, None),
        stats.count_series_by_queue(3600.0, 60.0),
        stats.count_series_by_kind(3600.0, 60.0),
        stats.count_histogram(3600.0, 60.0, "minute", None, None),
        failures.find_all(datetime(2026, 1, 1, tzinfo=UTC), 10),
        reports.identify_server(),
        reports.probe_writable(),
    ]


def test_the_role_of_workers_can_run_every_statement_of_workers(owner):
    become(owner, "worker")
    assert len(owner.sql("select * from tenure.migrations")) == len(migrations())
    owner.enqueue({}, {"delay": 60})
    worker = owner.worker()
    for query in statements(worker, str(uuid4())) + web_statements():
        owner.run(query)


def test_partitions_made_later_are_open_to_the_same_roles(owner):
    become(owner, "worker")
    owner.sql("select tenure.make_history(30)")
    owner.sql("reset role")
    [(newest,)] = owner.sql("select max(relname) from pg_class where relname ~ '^history_[0-9]{8}$'")
    for role in ("worker", "read"):
        become(owner, role)
        assert owner.sql(f"select count(*) from tenure.{newest}") == [(0,)]
        owner.sql("reset role")


def test_the_grants_can_be_printed_for_any_schema(bare_dsn):
    text = roles_sql("My 'Jobs'")
    assert """grant usage on schema "My 'Jobs'" to "My 'Jobs'_worker",""" in text
    assert not re.search(r"\btenure[._]", text)
    with Database(bare_dsn) as database, pytest.raises(psycopg.errors.RaiseException, match="no schema My 'Jobs'"):
        database.connection.execute(roles_sql("My 'Jobs'", "grants").encode(), prepare=False)
