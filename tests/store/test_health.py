"""Each thing that slows or stops a queue, made on a real server, is found; and a server without any of them has no finding."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tenure import Tenure
from tenure.model import health_server
from tenure.model.findings import Finding
from tenure.model.health import Probe
from tenure.model.health_server import Clock, Limits, ServerSetting, Slot
from tenure.model.health_sessions import Sessions, Transaction
from tenure.model.health_tables import History, Schema, Table
from tenure.model.health_work import DeadLetters
from tenure.store import health, jobs
from tenure.store.expected import expected_indexes
from tenure.store.migrator import migrate, migrations
from tenure.store.reports import ServerRow
from tenure.store.target import DatabaseTarget
from tests.store.database import Database
from tests.store.later_migrations import NEWEST, later

__all__ = ["later"]

OF_THE_TEST_SERVER = {"not_durable"}
"""It runs without fsync, to be fast."""


@pytest.fixture
def sick(fresh_dsn: str) -> Iterator[Database]:
    """A database to be made sick."""
    with Database(fresh_dsn) as database:
        yield database


async def look(dsn: str) -> list[Finding]:
    app = Tenure(dsn)
    try:
        return [finding for finding in (await app.client().probe()).findings if finding.code not in OF_THE_TEST_SERVER]
    finally:
        await app.close()


async def codes(dsn: str) -> list[str]:
    return [finding.code for finding in await look(dsn)]


async def only(dsn: str, code: str) -> Finding:
    [finding] = await look(dsn)
    assert finding.code == code
    assert finding.text
    assert finding.way_out
    return finding


async def test_a_new_database_has_no_finding(fresh_dsn):
    assert await codes(fresh_dsn) == []


# Tables, indexes, partitions


@pytest.mark.parametrize("phase", ["pre", None])
async def test_the_indexes_that_are_expected_are_those_that_the_migrations_make(bare_dsn, phase, later):
    later()
    await migrate(DatabaseTarget.at(bare_dsn), phase=phase)
    with Database(bare_dsn) as database:
        made = database.sql(
            "select i.indexname, i.tablename from pg_indexes i join pg_class c on c.oid = ('tenure.' || i.tablename)::regclass"
            " where i.schemaname = 'tenure' and not c.relispartition"
        )
    assert expected_indexes({m.key for m in migrations() if phase in (None, m.phase)}) == dict(made)
    assert await codes(bare_dsn) == ([] if phase is None else ["post_pending"])


async def test_a_dropped_index_is_named(sick, fresh_dsn):
    sick.sql("drop index tenure.jobs_due")
    assert "jobs_due on jobs" in (await only(fresh_dsn, "missing_index")).text


async def test_an_index_that_is_not_valid_is_named(sick, fresh_dsn):
    sick.sql("update pg_index set indisvalid = false where indexrelid = 'tenure.jobs_due'::regclass")
    assert "jobs_due" in (await only(fresh_dsn, "invalid_index")).text


async def test_an_index_that_is_there_twice_is_named(sick, fresh_dsn):
    sick.sql("create index users_own on tenure.jobs (run_at) where position = 0")
    assert "jobs_due and users_own" in (await only(fresh_dsn, "duplicate_index")).text
    sick.sql("create index useful on tenure.jobs (run_at, kind)")
    assert await codes(fresh_dsn) == ["duplicate_index"], "an index of the user's own is not a fault"


async def test_autovacuum_that_is_off_for_a_table_is_found(sick, fresh_dsn):
    sick.sql("alter table tenure.jobs set (autovacuum_enabled = off)")
    assert "tenure.jobs" in (await only(fresh_dsn, "autovacuum_off")).text


async def test_an_unlogged_table_is_found(sick, fresh_dsn):
    sick.sql("alter table tenure.jobs set unlogged")
    assert "alter table tenure.jobs set logged" in (await only(fresh_dsn, "unlogged")).way_out


async def test_partitions_that_are_missing_and_what_they_did_not_take_are_found(sick, fresh_dsn):
    today = datetime.now(UTC).date()
    sick.sql(f"drop table tenure.history_{today + timedelta(days=1):%Y%m%d}")
    assert (today + timedelta(days=1)).isoformat() in (await only(fresh_dsn, "partition_hole")).text
    for (table,) in sick.sql("select relname from pg_class where relkind = 'r' and relname ~ '^history_[0-9]+$'"):
        sick.sql(f"drop table tenure.{table}")
    sick.sql(
        "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state,"
        " kind, queue, input) values (gen_random_uuid(), 1, now(), now(), 1, 1, 50, 0, 'completed', 'k', 'q', '{}')"
    )
    assert await codes(fresh_dsn) == ["partition_hole", "unplaced"]


async def test_tables_without_a_replica_identity_under_a_publication_are_found(sick, fresh_dsn):
    sick.sql("create publication changes for all tables")
    sick.sql("create table tenure.probe_me (what text)")
    told = [finding.text for finding in await look(fresh_dsn) if finding.code == "replica_identity"]
    assert any("tenure.probe_me has no replica identity, so publication changes" in text for text in told)
    assert not any("tenure.jobs " in text for text in told)
    sick.sql("alter table tenure.probe_me replica identity full")
    told = [finding.text for finding in await look(fresh_dsn) if finding.code == "replica_identity"]
    assert not any("probe_me" in text for text in told)


async def test_an_old_schema_is_found_and_nothing_else_is_asked(sick, fresh_dsn, later):
    later()
    sick.sql("drop table tenure.leases cascade")
    assert f"at version {NEWEST}" in (await only(fresh_dsn, "old_schema")).text


async def test_a_pending_second_phase_is_not_a_finding_while_old_workers_need_what_it_removes(bare_dsn, later):
    later()
    await migrate(DatabaseTarget.at(bare_dsn), phase="pre")
    with Database(bare_dsn) as database:
        database.worker()
        assert await codes(bare_dsn) == ["post_pending"]
        database.sql("update tenure.workers set schema_version = null")
        assert await codes(bare_dsn) == []


# Sessions


async def test_long_transactions_are_named_with_their_session(sick, fresh_dsn, monkeypatch):
    monkeypatch.setattr(health, "OLD_TRANSACTION", 0.0)
    with (
        Database(fresh_dsn, application_name="a_long_report") as reader,
        Database(fresh_dsn, application_name="a_lazy_writer") as writer,
    ):
        reader.sql("begin isolation level repeatable read; select count(*) from tenure.jobs")
        writer.sql("begin; lock table tenure.queues in share mode")
        found = {finding.code: finding.text for finding in await look(fresh_dsn)}
        pids = reader.connection.info.backend_pid, writer.connection.info.backend_pid
        reader.sql("rollback")
        writer.sql("rollback")
    assert f"session {pids[0]} (a_long_report, user " in found["old_snapshot"]
    assert f"session {pids[1]} (a_lazy_writer, user " in found["long_transaction"]
    assert "idle in transaction" in found["long_transaction"]


async def test_an_account_that_sees_little_says_what_and_which_grant_helps(sick, fresh_dsn):
    sick.sql("create role shortsighted login")
    try:
        sick.sql("grant usage on schema tenure to shortsighted; grant select on all tables in schema tenure to shortsighted")
        found = {one.code: one for one in await look(make_conninfo(fresh_dsn, user="shortsighted"))}
        assert found["limited"].severity == "note"
        assert "grant pg_read_all_stats to shortsighted" in found["limited"].way_out
        sick.sql("grant pg_read_all_stats to shortsighted; revoke select on tenure.minutes from shortsighted")
        found = {one.code: one for one in await look(make_conninfo(fresh_dsn, user="shortsighted"))}
        assert list(found) == ["unseen"]
        assert "dead letters (permission denied for table minutes)" in found["unseen"].text
    finally:
        sick.sql("drop owned by shortsighted; drop role shortsighted")


# The server


async def test_settings_of_the_database_and_of_our_role_are_found(sick, fresh_dsn):
    name = conninfo_to_dict(fresh_dsn)["dbname"]
    sick.sql("create role careless login superuser")
    try:
        sick.sql(f"alter database {name} set default_transaction_isolation = 'serializable'")
        sick.sql("alter role careless set statement_timeout = '5s'")
        told = [(one.code, one.way_out) for one in await look(make_conninfo(fresh_dsn, user="careless"))]
        assert told == [
            ("hostile_setting", f"run: alter database {name} reset default_transaction_isolation"),
            ("hostile_setting", "run: alter role careless reset statement_timeout"),
        ]
        assert await codes(fresh_dsn) == ["hostile_setting"], "another role's settings are not ours"
        sick.sql(f"alter database {name} reset all; alter role careless set statement_timeout = '5min'")
        assert await codes(make_conninfo(fresh_dsn, user="careless")) == []
    finally:
        sick.sql("drop role careless")


async def test_a_server_that_may_lose_what_it_accepted_is_found(fresh_dsn, sick):
    expected = sick.sql("show fsync") == [("off",)]
    app = Tenure(fresh_dsn)
    assert any(finding.code == "not_durable" for finding in (await app.client().probe()).findings) is expected
    await app.close()


async def test_an_inactive_replication_slot_is_found(sick, fresh_dsn, monkeypatch):
    monkeypatch.setattr(health_server, "MOST_WAL", -1)
    name = f"unused_{conninfo_to_dict(fresh_dsn)['dbname']}"
    sick.sql("select pg_create_physical_replication_slot(%s, true)", name)
    try:
        assert f"select pg_drop_replication_slot('{name}')" in [
            one.way_out.partition("run: ")[2] for one in await look(fresh_dsn)
        ]
    finally:
        sick.sql("select pg_drop_replication_slot(%s)", name)


@pytest.mark.parametrize(
    ("code", "fact"),
    [
        ("dead_rows", Table(name="jobs", dead=200_000, live=1_000)),
        ("connections", Sessions(connections=95, max_connections=100)),
        ("partitions", History(days_ahead=1)),
        ("partitions", History(days_ahead=-1)),
        ("wraparound", Limits(xid_age=1_500_000_000)),
        ("wraparound", Limits(multixact_age=1_500_000_000)),
        ("notify_queue", Limits(notify_usage=0.5)),
        ("autovacuum_off", Limits(autovacuum=False)),
        ("clock", Clock(difference=-60.0)),
        ("clock", Clock(difference=60.0)),
        ("inactive_slot", Slot("s", 0, holds_rows=True)),
        ("inactive_slot", Slot("s", 2 << 30, holds_rows=False)),
        ("not_durable", ServerSetting("fsync", "off", "the whole server", "reset it")),
        ("hostile_setting", ServerSetting("lock_timeout", "500", "role x", "reset it")),
        ("hostile_setting", ServerSetting("default_transaction_read_only", "on", "role x", "reset it")),
        ("dead_letters", DeadLetters(last_hour=10, total=12, kind="send")),
        (
            "old_snapshot",
            Sessions(transactions=[Transaction(None, "prepared transaction x", "me", "prepared", 900.0, snapshot=True)]),
        ),
    ],
)
def test_what_a_test_cannot_make_is_judged_by_its_facts(code, fact):
    assert [finding.code for finding in Probe(facts=[fact]).findings] == [code]


@pytest.mark.parametrize(
    "fact",
    [
        Table(name="jobs", dead=200_000, live=1_000_000),
        Sessions(connections=80, max_connections=100),
        History(days_ahead=7),
        Limits(xid_age=150_000_000, notify_usage=0.1),
        Clock(difference=2.0),
        Slot("s", 1 << 20, holds_rows=False),
        ServerSetting("statement_timeout", "0", "role x", "reset it"),
        ServerSetting("statement_timeout", "10min", "role x", "reset it"),
        ServerSetting("synchronous_commit", "remote_apply", "role x", "reset it"),
        DeadLetters(last_hour=9, total=100, kind="send"),
        Schema(version=10, needed=10, pending_post=["0010_post_x"], old_workers=1),
    ],
)
def test_a_healthy_database_has_no_finding(fact):
    assert Probe(facts=[fact]).findings == []


def test_the_clock_of_the_server_is_compared_within_the_time_that_the_question_took():
    def difference(clock: float) -> float:
        [_, found] = health._server([ServerRow(clock, True, 0.0, 0, 0)], began=100.0, ended=110.0)
        return found.difference

    assert [difference(clock) for clock in (100.0, 105.0, 110.0, 130.0, 90.0)] == [0.0, 0.0, 0.0, 20.0, -10.0]


def test_that_notify_is_not_delivered_is_a_finding_of_the_process_that_listens():
    assert [finding.code for finding in replace(Probe(), not_delivering=True).findings] == ["notify_not_delivered"]


# Work


def pend(database: Database, *given: dict[str, object]) -> None:
    database.enqueue(*given)
    database.sql("update tenure.jobs set enqueued_at = now() - interval '5 minutes'")


async def test_a_paused_queue_in_which_jobs_wait_is_found(sick, fresh_dsn):
    sick.worker(queues=["mail", "default"])
    sick.sql("insert into tenure.queues (name, paused_at, paused_by) values ('mail', now() - interval '2 hours', 'ann')")
    assert await codes(fresh_dsn) == []
    pend(sick, {"queue": "mail"}, {"queue": "mail", "kind": "unknown"})
    finding = await only(fresh_dsn, "paused_queue")
    assert "queue 'mail' is paused for 2h by ann, and 2 jobs wait in it" in finding.text
    assert finding.way_out == "resume it: tenure queues resume mail"


@pytest.mark.parametrize("limited", [False, True], ids=["open", "under a limit"])
@pytest.mark.parametrize(
    ("job", "code"),
    [
        ({"queue": "nowhere"}, "no_worker_for_queue"),
        ({"kind": "strange"}, "no_worker_for_kind"),
        ({"capability": "gpu"}, "no_worker_for_capability"),
    ],
)
async def test_jobs_that_no_live_worker_can_run_are_found(sick, fresh_dsn, job, code, limited):
    if limited:
        for name in ("queue:nowhere", "kind:strange", "kind:work"):
            sick.sql("""insert into tenure.limits (name, declared) values (%s, '{"concurrency": 1}')""", name)
    sick.worker()
    pend(sick, {}, {"priority": 9}, *[{**job, "priority": priority} for priority in (1, 99)])
    finding = await only(fresh_dsn, code)
    assert "2 jobs of kind" in finding.text


async def test_counts_that_stop_early_say_at_least_and_every_unknown_kind_is_named(sick, fresh_dsn):
    sick.worker()
    pend(sick, *[{"kind": "strange"}] * 990, *[{"kind": "odd"}] * 20, {"kind": "other", "priority": 9})
    texts = [finding.text.partition(" in queue")[0] for finding in await look(fresh_dsn)]
    assert sorted(texts) == [
        "1 job of kind 'other' waits",
        "at least 10 jobs of kind 'odd' wait",
        "at least 990 jobs of kind 'strange' wait",
    ]


async def test_jobs_that_came_in_just_now_or_are_for_no_worker_at_all_are_left_to_others(sick, fresh_dsn):
    pend(sick, {"queue": "nowhere"})
    assert await codes(fresh_dsn) == [], "no worker is alive: that is the finding"
    sick.worker()
    assert await codes(fresh_dsn) == ["no_worker_for_queue"]
    sick.sql("update tenure.jobs set enqueued_at = now()")
    assert await codes(fresh_dsn) == []


async def test_dead_letters_that_grow_are_found(sick, fresh_dsn):
    sick.worker()
    sick.sql("insert into tenure.tallies (queue, kind, what, jobs) values ('default', 'send', 'dead_letter', 7)")
    sick.sql("insert into tenure.minutes values (now() - interval '5 min', 'default', 'send', 'dead_letter', 4)")
    sick.sql("insert into tenure.minutes values (now() - interval '5 hours', 'default', 'send', 'dead_letter', 400)")
    assert "11 jobs became dead letters in the last hour, most of kind 'send'" in (await only(fresh_dsn, "dead_letters")).text


async def test_jobs_held_by_a_worker_that_is_not_known_are_found(sick, fresh_dsn):
    worker = sick.worker()
    sick.enqueue({})
    sick.claim(worker)
    assert await codes(fresh_dsn) == []
    sick.sql("delete from tenure.workers")
    assert "1 job is held" in (await only(fresh_dsn, "held_by_unknown")).text


async def test_held_workflows_are_found_by_kind_with_the_reason_and_the_way_out(sick, fresh_dsn):
    waiting = [
        ("order", {"held": "the code asks for check"}),
        ("order", {"held": "the code asks for check"}),
        ("ship", {"held": "no step"}),
        ("order", None),
        ("order", {"blockers": []}),
    ]
    for kind, system in waiting:
        sick.sql(
            "insert into tenure.jobs (id, state, position, kind, queue, system)"
            " values (gen_random_uuid(), 'waiting', -2, %s, 'default', %s::jsonb)",
            kind,
            None if system is None else json.dumps(system),
        )
    orders, shipments = await look(fresh_dsn)
    assert {orders.code, shipments.code} == {"held_workflows"}
    assert orders.text.startswith("2 workflows of kind 'order' are held, because the code differs")
    assert orders.text.endswith(": the code asks for check")
    assert "tenure workflows resume ID" in orders.way_out
    assert shipments.text.startswith("1 workflow of kind 'ship' is held")


async def test_a_look_at_a_large_backlog_goes_by_the_index(sick, fresh_dsn):
    """Under the planner's settings of the leader's own connections."""
    sick.worker()
    sick.sql(
        "insert into tenure.jobs (id, state, position, kind, queue, enqueued_at) select gen_random_uuid(), 'pending',"
        " nextval('tenure.job_position'), 'strange', 'default', now() - interval '1 hour' from generate_series(1, 20000)"
    )
    finding = await only(fresh_dsn, "no_worker_for_kind")
    assert "1,000 jobs of kind 'strange'" in finding.text


def test_every_check_can_be_made_in_a_schema_of_any_name(bare_dsn):
    place = DatabaseTarget.at(bare_dsn, schema="My Jobs")
    asyncio.run(migrate(place))
    app = Tenure(bare_dsn, schema="My Jobs")
    found = app.client().probe_sync()
    app._portal.close()
    assert {one.code for one in found.findings} <= OF_THE_TEST_SERVER
    assert found.unseen == []


def test_the_claim_that_jobs_are_settled_leaves_no_finding(sick, fresh_dsn):
    worker = sick.worker()
    sick.enqueue({})
    sick.run(jobs.finish(sick.claim(worker).finished()))
    assert asyncio.run(codes(fresh_dsn)) == []
