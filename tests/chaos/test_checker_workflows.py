"""I24 a chain has one end, I25 no wake-up is lost, I26 failed workflows are undone, and what other invariants allow workflows."""

from __future__ import annotations

import pytest

from tenure.chaos.invariants.duties import MAX_DELAY, MAX_DELAY_AFTER_HANDOVER
from tenure.chaos.ledger import FinalLink
from tests.chaos.builder import LedgerBuilder, Row

# Chains


def link(job: str, *, chain: str = "first", kind: str = "chained_link", **more: object) -> FinalLink:
    values = {"state": "completed", "next": None, "parent": None, "missing": None, **more}
    return FinalLink(job, chain, kind, **values)  # type: ignore[arg-type]


FIRST = link("first", kind="chained", next="second")
SECOND = link("second", parent="first")

SOUND = [FIRST, SECOND, link("waits", chain="waits", kind="chained_join")]

BROKEN = {
    "has 2 ends": [FIRST, SECOND, link("third", parent="first")],
    "which does not exist": [FIRST],
    "and so was": [FIRST, SECOND, link("other", chain="other", kind="chained", next="second")],
    "no other was continued by": [link("first", kind="chained"), SECOND],
    "still waits for 2 chains": [*SOUND, link("late", chain="late", kind="chained_join", state="blocked", missing=2)],
    "which has another id": [FIRST, link("second", kind="chained", parent="first")],
}


def with_links(links: list[FinalLink]) -> LedgerBuilder:
    builder = LedgerBuilder()
    builder.done()
    builder.links += links
    return builder


def test_a_sound_record_is_accepted(tmp_path):
    assert with_links(SOUND).broken(tmp_path) == []


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_record_is_found(tmp_path, why):
    violations = with_links(BROKEN[why]).check(tmp_path).violations
    assert {violation.number for violation in violations} == {"I24"}
    assert any(why in violation.what for violation in violations)


# Workflows

EVENT = "campaign_event"


def begun(kind: str = "workflow_waiting") -> tuple[LedgerBuilder, Row]:
    builder = LedgerBuilder()
    builder.lead("a", 1, duty="resolver")
    builder.wait(60)
    row = builder.enqueue(kind)
    builder.claim(row)
    builder.start(row)
    return builder, row


def finished(builder: LedgerBuilder, row: Row) -> None:
    """Continues, and completes with one step."""
    builder.promote(row)
    builder.claim(row)
    builder.start(row)
    value = builder.step(row, "a")
    builder.complete(row, output=builder.output_of(row, steps=1, last=value))


def waiting_for_event(builder: LedgerBuilder, row: Row) -> None:
    builder.suspend(row)
    builder.record(row, EVENT, {"event": EVENT, "key": "1"}, what="wait", state="open")


# I25


@pytest.mark.parametrize(("late", "found"), [(MAX_DELAY - 1, []), (MAX_DELAY + 1, ["I25"])])
@pytest.mark.parametrize("first", ["event", "wait"])
def test_a_workflow_continues_soon_after_its_event(tmp_path, first, late, found):
    builder, row = begun()
    if first == "event":
        builder.emit(row.n)
    waiting_for_event(builder, row)
    if first == "wait":
        builder.wait(60)
        builder.emit(row.n)
    builder.wait(late)
    finished(builder, row)
    assert builder.broken(tmp_path) == found


@pytest.mark.parametrize(("late", "found"), [(MAX_DELAY - 1, []), (MAX_DELAY + 1, ["I25"])])
def test_a_workflow_continues_soon_after_its_children(tmp_path, late, found):
    builder, row = begun("workflow_parent")
    children = [builder.insert(f"child {number}", None, "workflow_child") for number in (1, 2)]
    for child in children:
        builder.record(row, child.id, {"child": child.id}, what="call", state="open")
    builder.suspend(row)
    for child in children:
        builder.wait(MAX_DELAY * 2)
        builder.finish(child)
    builder.wait(late)
    finished(builder, row)
    assert builder.broken(tmp_path) == found


def test_a_workflow_that_is_never_woken(tmp_path):
    builder, row = begun()
    waiting_for_event(builder, row)
    builder.emit(row.n)
    builder.set(drained=False)
    assert builder.broken(tmp_path) == ["I14", "I25"]


def test_a_workflow_whose_event_was_not_sent_waits_until_its_time(tmp_path):
    builder, row = begun()
    waiting_for_event(builder, row)
    builder.emit(row.n, answer="unknown")
    builder.wait(MAX_DELAY * 3)
    finished(builder, row)
    assert builder.broken(tmp_path) == []


@pytest.mark.parametrize(("late", "found"), [(MAX_DELAY_AFTER_HANDOVER - 1, []), (MAX_DELAY_AFTER_HANDOVER + 1, ["I25"])])
def test_a_duty_that_changes_hands_takes_longer(tmp_path, late, found):
    builder, row = begun()
    waiting_for_event(builder, row)
    builder.emit(row.n)
    builder.lead("b", 2, duty="resolver")
    builder.wait(late)
    finished(builder, row)
    assert builder.broken(tmp_path) == found


@pytest.mark.parametrize(("sent", "found"), [(True, ["I25"]), (False, [])])
def test_a_timeout_although_the_event_was_sent_before(tmp_path, sent, found):
    builder, row = begun()
    if sent:
        builder.emit(row.n)
    waiting_for_event(builder, row)
    builder.promote(row)
    builder.claim(row)
    builder.start(row)
    if not sent:
        builder.emit(row.n)
    builder.record(row, EVENT, what="wait", was="open", state="failed")
    value = builder.step(row, "a")
    builder.complete(row, output=builder.output_of(row, steps=1, last=value))
    assert builder.broken(tmp_path) == found


@pytest.mark.parametrize(("late", "found"), [(MAX_DELAY - 1, []), (MAX_DELAY + 1, ["I22"])])
def test_a_sleep_ends_at_its_time(tmp_path, late, found):
    builder, row = begun()
    builder.suspend(row, due=builder.now + 60, position=0)
    builder.wait(60 + late)
    finished(builder, row)
    assert builder.broken(tmp_path) == found


# I26


def registered(builder: LedgerBuilder, row: Row) -> None:
    for name in ("undo x", "undo x#2"):
        builder.record(row, name, what="on_rollback")


def undone(builder: LedgerBuilder, row: Row, *names: str) -> None:
    for name in names:
        builder.step(row, f"(undo) {name}", what="undo")


def ended(builder: LedgerBuilder, row: Row, state: str) -> None:
    builder.run("raised", row)
    builder.remove(row)
    builder.settle(row, state, output=builder.output_of(row, steps=0, last=""))


@pytest.mark.parametrize("state", ["failed", "canceled"])
@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["undo x#2", "undo x"], []),
        (["undo x", "undo x#2"], ["I26"]),
        (["undo x#2"], ["I26"]),
        ([], ["I26"]),
    ],
)
def test_all_is_undone_in_reverse_order(tmp_path, state, names, found):
    builder, row = begun("workflow_undone")
    registered(builder, row)
    undone(builder, row, *names)
    ended(builder, row, state)
    assert builder.broken(tmp_path) == found


def test_what_a_completed_workflow_has_registered_is_not_undone(tmp_path):
    builder, row = begun("workflow_undone")
    registered(builder, row)
    value = builder.step(row, "a")
    undone(builder, row, "undo x#2")
    builder.complete(row, output=builder.output_of(row, steps=1, last=value))
    assert builder.broken(tmp_path) == ["I26"]


@pytest.mark.parametrize("cancellations", [1, 2])
def test_no_number_of_cancellations_ends_a_workflow_without_undoing_it(tmp_path, cancellations):
    builder, row = begun("workflow_undone")
    registered(builder, row)
    for _ in range(cancellations - 1):
        builder.call("cancel", job=row.id, reply=1)
    builder.cancel(row)
    assert builder.broken(tmp_path) == ["I26"]


# What other invariants allow


def test_a_canceled_workflow_that_was_already_rolled_back_ends_as_failed(tmp_path):
    builder, row = begun("workflow_undone")
    builder.call("cancel", job=row.id, reply=1)
    ended(builder, row, "failed")
    assert builder.broken(tmp_path) == []


def test_a_workflow_that_comes_to_a_wait_has_survived_its_crashes(tmp_path):
    builder, row = begun()
    builder.crash(row)
    builder.claim(row, "w2")
    builder.start(row)
    builder.suspend(row)
    finished(builder, row)
    assert builder.broken(tmp_path) == []


@pytest.mark.parametrize(("undo", "found"), [(True, []), (False, ["I20", "I26"])])
def test_a_run_continues_while_it_undoes_its_steps(tmp_path, undo, found):
    builder, row = begun("workflow_undone")
    builder.worker("registered")
    builder.record(row, "undo x", what="on_rollback")
    builder.run("raised", row)
    builder.wait(20)
    if undo:
        undone(builder, row, "undo x")
    builder.wait(10)
    builder.remove(row)
    builder.settle(row, "failed")
    assert builder.broken(tmp_path) == found
