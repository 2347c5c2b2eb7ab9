import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from threading import Barrier
from uuid import RFC_4122, UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.ids import UuidSource, uuid7, uuid7_time

SECOND = 1_000_000_000
NOW = 1_790_000_000 * SECOND


def rises(ids):
    return all(a < b for a, b in pairwise(ids))


def test_an_id_is_a_version_7_uuid():
    made = uuid7()
    assert (made.version, made.variant) == (7, RFC_4122)


def test_an_id_is_a_full_citizen_among_uuids():
    made = uuid7()
    assert made == UUID(str(made)) == UUID(int=made.int) == pickle.loads(pickle.dumps(made))
    assert hash(made) == hash(UUID(str(made)))


def test_an_id_contains_the_time_of_its_creation():
    source = UuidSource(clock=lambda: NOW + 123_999_999)
    assert uuid7_time(source.next()) == datetime.fromtimestamp(NOW / SECOND, UTC) + timedelta(milliseconds=123)


def test_the_time_of_now_is_now():
    assert abs(datetime.now(UTC) - uuid7_time(uuid7())) < timedelta(seconds=10)


def test_other_uuids_hold_no_time():
    with pytest.raises(ValueError, match="not a UUIDv7"):
        uuid7_time(uuid4())


def test_ids_of_one_thread_rise():
    assert rises([uuid7() for _ in range(20_000)])


def test_ids_rise_while_the_clock_stands_still():
    source = UuidSource(clock=lambda: NOW)
    assert rises([source.next() for _ in range(5_000)])


@given(st.lists(st.integers(min_value=0, max_value=NOW), min_size=2, max_size=50))
def test_ids_rise_even_if_the_clock_goes_back(readings):
    clock = iter(readings)
    source = UuidSource(clock=lambda: next(clock))
    ids = [source.next() for _ in readings]
    assert rises(ids)
    assert all(made.version == 7 and made.variant == RFC_4122 for made in ids)


def test_ids_rise_in_every_thread_and_none_is_made_twice():
    start = Barrier(8)

    def make(_):
        start.wait()
        return [uuid7() for _ in range(3_000)]

    with ThreadPoolExecutor(8) as threads:
        batches = list(threads.map(make, range(8)))
    assert all(rises(batch) for batch in batches)
    assert len({made for batch in batches for made in batch}) == 8 * 3_000


def test_neighbours_differ_by_chance_and_not_by_one():
    source = UuidSource(clock=lambda: NOW)
    ids = [source.next() for _ in range(100)]
    steps = {b.int - a.int for a, b in pairwise(ids)}
    assert len(steps) > 90


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_draws_its_own_randomness():
    uuid7()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, uuid7().bytes)
        os._exit(0)
    theirs = UUID(bytes=os.read(reading, 16))
    ours = uuid7()
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)
    assert theirs.version == 7
    assert theirs.int & ((1 << 62) - 1) != ours.int & ((1 << 62) - 1)
