"""I24: a chain has one end, and no job waits for a chain that has ended."""

from __future__ import annotations

import pytest

from tenure.chaos.ledger import FinalLink
from tests.chaos.builder import LedgerBuilder


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
