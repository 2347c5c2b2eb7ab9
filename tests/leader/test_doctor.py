"""The leader's duty: looks now and then, and logs what it found once. What can be found: tests/store/test_health.py."""

from __future__ import annotations

from tenure.leader.duties.doctor import Doctor
from tenure.leader.duties.duty import RoundResult
from tenure.leader.terms import HeldTerm
from tenure.model.findings import Finding
from tenure.model.health import NOTIFY_NOT_DELIVERED
from tenure.periodic import boottime
from tenure.store import leases
from tenure.store.link import Link


async def test_the_doctor_looks_and_logs_once(database_target, database, dsn, caplog):
    link = Link(database_target, "duties", hot=True)
    doctor, term = Doctor(lambda: True), database.term("doctor")

    def told() -> list[str]:
        return [record.code for record in caplog.records if record.message.startswith("doctor: ")]

    try:
        first = await doctor.run_once(link, term)
        assert (first.holds, first.rest) == (True, Doctor.every)
        assert NOTIFY_NOT_DELIVERED in first.findings
        again = await doctor.run_once(link, term)
        assert again.findings == first.findings
        assert told().count("notify_not_delivered") == 1
        database.end_term("doctor")
        assert not (await doctor.run_once(link, term)).holds
    finally:
        await link.close()


async def test_what_a_round_found_is_read_back_as_it_was(database_target, database):
    """From the row of the lease, which also has lines for people."""
    term = database.term("doctor")
    made = [Finding("a", "one: two; three", "do this; then: that", "note", about="mail"), NOTIFY_NOT_DELIVERED]
    held = HeldTerm(term, boottime())
    held.completed(RoundResult(holds=True, findings=made))
    async with Link(database_target, "duties", hot=True) as link:
        assert await link.fetch(leases.beat(term.holder, [held.take_record()])) == ["doctor"]
        [leader] = await link.fetch(leases.find_leaders())
        assert leader.findings == made
        assert leader.metadata["findings"] == [finding.line for finding in made]
        assert "found" not in leader.metadata
        await link.fetch(leases.beat(term.holder, [held.take_record()]))  # no round since: what was found still holds
        assert (await link.fetch(leases.find_leaders()))[0].findings == made
        held.completed(RoundResult(holds=True))
        await link.fetch(leases.beat(term.holder, [held.take_record()]))
        [leader] = await link.fetch(leases.find_leaders())
        assert (leader.findings, leader.metadata["findings"]) == ([], [])
