"""The leader's duty: looks now and then, and logs what it found once. What can be found: tests/store/test_health.py."""

from __future__ import annotations

from tenure.leader.duties.doctor import Doctor
from tenure.store.link import Link


async def test_the_doctor_looks_and_logs_once(database_target, database, dsn, caplog):
    link = Link(database_target, "duties", hot=True)
    doctor, term = Doctor(lambda: True), database.term("doctor")

    def told() -> list[str]:
        return [record.code for record in caplog.records if record.message.startswith("doctor: ")]

    try:
        first = await doctor.run_once(link, term)
        assert (first.holds, first.rest) == (True, Doctor.every)
        assert any(text.startswith("notify_not_delivered: NOTIFY") for text in first.findings)
        again = await doctor.run_once(link, term)
        assert again.findings == first.findings
        assert told().count("notify_not_delivered") == 1
        database.end_term("doctor")
        assert not (await doctor.run_once(link, term)).holds
    finally:
        await link.close()
