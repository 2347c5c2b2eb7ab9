"""What tells of trouble before anybody notices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tenure.leader.duties.doctor import Doctor
from tenure.model.health import Probe
from tenure.store import reports
from tenure.store.link import Link
from tests.store.desk import Desk

WELL = Probe(1.0, "psql, process 1", 100, 1000, None, 7, 0, 10, 100)


def test_what_is_well_is_not_remarked():
    assert WELL.findings == {}


@pytest.mark.parametrize(
    ("code", "probe"),
    [
        ("old_snapshot", replace(WELL, snapshot_age=301.0)),
        ("dead_rows", replace(WELL, dead_rows=200_000)),
        ("partitions", replace(WELL, days_ahead=1)),
        ("partitions", replace(WELL, days_ahead=-1)),
        ("unplaced", replace(WELL, unplaced=1)),
        ("connections", replace(WELL, connections=95)),
        ("deaf", replace(WELL, deaf=True)),
    ],
)
def test_trouble_is_named(code, probe):
    assert list(probe.findings) == [code]


def test_many_dead_rows_in_a_table_as_large_are_no_trouble():
    assert replace(WELL, dead_rows=200_000, live_rows=1_000_000).findings == {}


async def test_the_doctor_looks_and_tells_once(place, desk, dsn, caplog):
    link = Link(place, "duties", hot=True)
    doctor, term = Doctor(lambda: True), desk.term("doctor")
    try:
        first = await doctor.run_once(link, term)
        assert (first.holds, first.rest) == (True, Doctor.every)
        assert any(text.startswith("NOTIFY") for text in first.findings)
        again = await doctor.run_once(link, term)
        assert again.findings == first.findings
        assert len([record for record in caplog.records if record.message.startswith("NOTIFY")]) == 1
        desk.end_term("doctor")
        assert not (await doctor.run_once(link, term)).holds
    finally:
        await link.close()


def test_the_oldest_snapshot_is_found_with_its_owner(dsn, desk):
    with Desk(dsn) as idler:
        idler.sql("set application_name = 'a long report'")
        with idler.connection.transaction():
            idler.sql("set transaction isolation level repeatable read")
            idler.sql("select count(*) from tenure.jobs")
            probe = Probe(*desk.run(reports.probe())[0])
    assert probe.snapshot_of is not None
    assert probe.snapshot_age >= 0
    assert probe.days_ahead == 7
    assert probe.max_connections > probe.connections > 0


def test_a_missing_partition_and_what_it_did_not_take_are_found(fresh_dsn):
    with Desk(fresh_dsn) as desk:
        for (table,) in desk.sql("select relname from pg_class where relkind = 'r' and relname ~ '^history_[0-9]+$'"):
            desk.sql(f"drop table tenure.{table}")
        desk.sql(
            "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state,"
            " kind, queue, input) values (gen_random_uuid(), 1, now(), now(), 1, 1, 50, 0, 'completed', 'k', 'q', '{}')"
        )
        assert {"partitions", "unplaced"} <= Probe(*desk.run(reports.probe())[0]).findings.keys()
