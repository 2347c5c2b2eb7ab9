"""What may be asked for, and how the answers of two tables become one page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.client.filters import FIRST_ID, LAST_ID, Filters, to_id
from tenure.client.pages import Look, check_limit, merge
from tenure.model.errors import ConfigError, InvalidJobId, InvalidPayload, JobNotFound
from tenure.model.ids import uuid7
from tenure.model.states import State

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_states_are_named_alone_or_together():
    assert Filters.of(state="failed").states == {State.FAILED}
    assert Filters.of(state=State.RETRY).states == {State.RETRY}
    assert Filters.of(state=["failed", State.RETRY]).states == {State.FAILED, State.RETRY}
    assert Filters.of(state=None).states is None
    assert Filters.of() == Filters()


def test_priorities_have_names():
    assert Filters.of(priority="high").priority == 75
    assert Filters.of(priority=0).priority == 0


WRONG = {
    "a state that is misspelt": ({"state": "compleeted"}, "did you mean 'completed'"),
    "a state in a list": ({"state": ["failed", "Runing"]}, "did you mean 'running'"),
    "a state like no other": ({"state": "xyz"}, "there are scheduled, blocked"),
    "no state at all": ({"state": []}, "empty list"),
    "a filter that does not exist": ({"kinds": "work"}, "did you mean 'kind'"),
    "an empty kind": ({"kind": ""}, "kind is ''"),
    "a queue with a NUL": ({"queue": "a\0b"}, "queue is"),
    "a kind that is not text": ({"kind": 5}, "kind is 5"),
    "a priority out of range": ({"priority": 101}, "priority is 101"),
    "a parent that is not an id": ({"parent": "father"}, "not a UUID"),
    "a time without a zone": ({"enqueued_after": NOW.replace(tzinfo=None)}, "time zone"),
    "a time that is none": ({"enqueued_before": "yesterday"}, "datetime"),
    "input that is not a mapping": ({"input": [1]}, "mapping"),
}


@pytest.mark.parametrize(("words", "told"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_meant_is_refused_with_the_way_out(words, told):
    with pytest.raises(ConfigError, match=told):
        Filters.of(**words)


@pytest.mark.parametrize("contained", [{"a": float("nan")}, {"a": object()}, {"a": "\0"}])
def test_input_that_postgresql_cannot_keep_is_refused(contained):
    with pytest.raises(InvalidPayload):
        Filters.of(input=contained)


@pytest.mark.parametrize("limit", [0, -1, 1001, True, "5", 2.0, None])
def test_a_limit_is_a_number_from_1_to_1000(limit):
    with pytest.raises(ConfigError, match="from 1 to 1000"):
        check_limit(limit)


@pytest.mark.parametrize("wrong", ["", "abc", 5, None])
def test_an_id_is_a_uuid_and_what_is_none_is_reported_as_a_job_that_does_not_exist(wrong):
    with pytest.raises(JobNotFound, match="not a UUID") as caught:
        to_id(wrong)
    assert isinstance(caught.value, InvalidJobId)


def test_an_id_may_be_given_as_text():
    job_id = uuid4()
    assert to_id(str(job_id)) == to_id(job_id) == job_id


def test_times_narrow_the_ids_that_are_looked_at_with_room_for_calls_made_early_and_clocks_that_differ():
    assert Filters().span == (FIRST_ID, LAST_ID)
    now = datetime.now(UTC)
    floor, ceiling = Filters.of(enqueued_after=now, enqueued_before=now).span
    assert floor < uuid7() < ceiling
    assert _time_of(floor) < now - timedelta(minutes=59)
    assert now < _time_of(ceiling) < now + timedelta(minutes=2)
    assert Filters.of(enqueued_after=datetime(1960, 1, 1, tzinfo=UTC)).span == (FIRST_ID, LAST_ID)
    first, last = datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), datetime.max.replace(tzinfo=UTC)
    assert Filters.of(enqueued_after=first).span == (FIRST_ID, LAST_ID)
    floor, _ = Filters.of(enqueued_after=last, enqueued_before=last).span
    assert floor > FIRST_ID


def _time_of(job_id: UUID) -> datetime:
    return datetime.fromtimestamp((job_id.int >> 80) / 1000, UTC)


def ids_of(numbers: list[int]) -> list[UUID]:
    return [UUID(int=number) for number in sorted(numbers, reverse=True)]


def look(known: list[int], before: int, limit: int, reach: int) -> Look:
    """As a table answers: at most `limit` ids, from `reach` rows at most."""
    seen = [number for number in sorted(known, reverse=True) if number < before]
    passed = seen[:reach]
    fitting = [number for number in passed if number % 3][:limit]
    if len(fitting) == limit:
        return Look(ids_of(fitting), UUID(int=fitting[-1]))
    return Look(ids_of(fitting), UUID(int=passed[-1]) if len(passed) == reach else None)


@given(
    live=st.sets(st.integers(1, 60)),
    finished=st.sets(st.integers(1, 60)),
    limit=st.integers(1, 10),
    reach=st.integers(1, 12),
)
def test_pages_of_two_tables_hold_every_job_once_newest_first(live, finished, limit, reach):
    """A job that finished between the two reads is in both results."""
    found: list[UUID] = []
    before, pages = 61, 0
    while True:
        looks = [look(list(table), before, limit + 1, reach) for table in (live, finished)]
        ids, edge = merge(looks, limit)
        assert len(ids) <= limit
        found += ids
        pages += 1
        if edge is None:
            break
        assert edge.int < before, "every page gets further"
        before = edge.int
    assert found == ids_of([number for number in live | finished if number % 3])
