"""What processes notify each other of: as values, and as the text of NOTIFY."""

from __future__ import annotations

import asyncio
import pickle
from uuid import UUID, uuid4

import pytest

from tenure.model.wakeup import LONGEST_PAYLOAD, MOST_NAMED, Topic, Wakeup
from tenure.store.link import Link
from tenure.store.notifier import Notifier

JOB = UUID("0199a3f0-0000-7000-8000-000000000001")

WAKEUPS = {
    "jobs mail": Wakeup.new_jobs("mail"),
    "due": Wakeup.job_scheduled(),
    f"ended {JOB}": Wakeup.job_ended(JOB),
    f"progress {JOB}": Wakeup.progress_changed(JOB),
    f"lost {JOB}": Wakeup.job_lost(JOB),
    "lost": Wakeup.any_job_lost(),
    "duty": Wakeup.duty_free(),
    "limits": Wakeup.limits_changed(),
    "schedules": Wakeup.schedule_changed(),
    "chains": Wakeup.chain_ended(),
    "events": Wakeup.event_sent(),
    "lease nightly": Wakeup.lease_released("nightly"),
    f"test {JOB}": Wakeup.listener_test(JOB),
    "": Wakeup.missed(),
}


def test_every_topic_is_tested_here():
    assert {wakeup.topic for wakeup in WAKEUPS.values()} == set(Topic)


@pytest.mark.parametrize(("payload", "wakeup"), WAKEUPS.items(), ids=list(WAKEUPS))
def test_a_wakeup_is_the_same_after_its_journey_as_text(payload, wakeup):
    assert wakeup.payload() == payload
    assert Wakeup.parse(payload) == wakeup
    assert type(Wakeup.parse(payload).topic) is Topic


@pytest.mark.parametrize(
    "queue", ["two words", " leading", "trailing ", "jobs jobs", "due", "größer 🚚", "日本", "a\nb", "'", '"']
)
def test_any_subject_survives(queue):
    for wakeup in (Wakeup.new_jobs(queue), Wakeup.lease_released(queue)):
        assert Wakeup.parse(wakeup.payload()) == wakeup


UNKNOWN = (
    "anything", "Jobs mail", "jobs", "jobs ", "ended", "progress", "lease", "test", "due now", "duty x", "limits x",
    "schedules x", " due", " x", "jobs\tmail", "gone 1", "self 123", "\x00", "\ufffd", "j" * LONGEST_PAYLOAD, '{"jobs": "mail"}',
)  # fmt: skip


@pytest.mark.parametrize("payload", UNKNOWN)
def test_text_that_is_not_known_is_ignored(payload):
    assert Wakeup.parse(payload) is None


def test_the_same_wakeup_from_an_id_and_from_its_text():
    assert Wakeup.job_ended(JOB) == Wakeup.job_ended(str(JOB))
    assert len({Wakeup.job_lost(JOB), Wakeup.job_lost(str(JOB))}) == 1
    assert Wakeup.job_ended(JOB) != Wakeup.progress_changed(JOB)


def test_wakeups_cannot_be_changed_and_can_be_sorted_and_sent_to_other_processes():
    with pytest.raises(AttributeError):
        Wakeup.missed().topic = Topic.DUE  # type: ignore[misc]
    assert min(WAKEUPS.values()) == Wakeup.missed()
    for wakeup in WAKEUPS.values():
        assert pickle.loads(pickle.dumps(wakeup)) == wakeup


def test_wakeups_of_a_queue_are_one_object():
    """Enqueues put those of many calls into sets."""
    name = "mail"
    assert Wakeup.new_jobs("mail") is Wakeup.new_jobs(f"{name}")


def test_lost_jobs_are_named_unless_they_are_many():
    ids = [uuid4() for _ in range(MOST_NAMED + 1)]
    assert Wakeup.jobs_lost(ids[1:]) == [Wakeup.job_lost(job_id) for job_id in ids[1:]]
    assert Wakeup.jobs_lost(ids) == [Wakeup.any_job_lost()]
    assert len(Wakeup.jobs_lost(ids, at_most=100)) == len(ids)
    assert Wakeup.jobs_lost([]) == []


@pytest.mark.parametrize("letter", ["x", "ö"])
async def test_one_that_is_too_long_is_dropped_and_the_others_are_sent(database_target, database, other, letter):
    other.sql("listen tenure")
    longest = letter * ((LONGEST_PAYLOAD - len("jobs ")) // len(letter.encode()))
    async with Link(database_target, "test") as link:
        notifier = Notifier(link)
        notifier.notify(Wakeup.new_jobs(longest + letter))
        notifier.notify(Wakeup.new_jobs(longest))
        notifier.notify(Wakeup.job_scheduled())
        await notifier.flush()
    received = await asyncio.to_thread(lambda: [note.payload for note in other.connection.notifies(timeout=60, stop_after=2)])
    assert sorted(received) == ["due", f"jobs {longest}"]
