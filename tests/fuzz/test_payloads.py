"""A payload is read back unchanged, or the enqueue is refused with the reason. No job is ever stuck."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure import JobFailed, Retry
from tenure.model.errors import InvalidPayload, NotEnqueued
from tests.fuzz.values import EXAMPLES, JSON, TEXT, VALUES

FUZZ = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
WITHIN = "60s"


def same(before: Any, after: Any) -> bool:
    """As JSON sees it: tuples are lists, and keys are text."""
    if isinstance(before, float) and isinstance(after, int | float):
        return before == after or math.isclose(before, after, rel_tol=1e-15)
    if isinstance(before, list | tuple):
        return isinstance(after, list) and len(before) == len(after) and all(map(same, before, after))
    if isinstance(before, dict):
        keyed = {key if isinstance(key, str) else json.dumps(key): value for key, value in before.items()}
        return isinstance(after, dict) and keyed.keys() == after.keys() and all(same(keyed[key], after[key]) for key in keyed)
    return type(before) is type(after) and before == after


def test_payloads_are_read_back_unchanged_or_refused_at_once(fuzz_worker):
    taken, refused = [], []

    @fuzz_worker.app.job
    async def echo(value: Any) -> Any:
        return value

    async def step(values: list[Any]) -> None:
        handles = []
        for value in values:
            try:
                handles.append((value, await echo.enqueue(value)))
            except NotEnqueued as error:
                refused.append(str(error))
        for value, handle in handles:
            back = await handle.result(WITHIN)
            assert same(value, back), (value, back)
            taken.append(handle)

    @FUZZ
    @given(st.lists(VALUES, min_size=20, max_size=60))
    def fuzz(values):
        fuzz_worker.run(step(values))

    fuzz_worker.open()
    fuzz()
    assert len(taken) > 13 * EXAMPLES
    assert len(refused) > EXAMPLES
    assert all(len(error) > 20 for error in refused)


def test_one_bad_payload_among_many_refuses_all_of_them_and_nothing_is_half_done(fuzz_worker, sql):
    @fuzz_worker.app.job
    async def echo(value: Any) -> Any:
        return value

    async def step(values: list[Any]) -> None:
        before = sql("select count(*) from tenure.all_jobs")
        try:
            handles = await fuzz_worker.app.enqueue_many([echo.call(value) for value in values])
        except NotEnqueued:
            assert sql("select count(*) from tenure.all_jobs") == before
            return
        assert [same(value, await handle.result(WITHIN)) for value, handle in zip(values, handles, strict=True)] == [True] * len(
            values
        )

    @FUZZ
    @given(st.lists(JSON, min_size=1, max_size=20))
    def fuzz(values):
        fuzz_worker.run(step(values))

    fuzz_worker.open()
    fuzz()


def test_results_are_read_back_unchanged_or_fail_the_job_with_the_reason(fuzz_worker):
    ends = set()
    values: list[Any] = []

    @fuzz_worker.app.job(retry=Retry(max_attempts=1))
    async def give(place: int) -> Any:
        return values[place]

    async def step() -> None:
        handles = await fuzz_worker.app.enqueue_many([give.call(place) for place in range(len(values))])
        for value, handle in zip(values, handles, strict=True):
            try:
                back = await handle.result(WITHIN)
            except JobFailed as failure:
                told = str(failure)
            else:
                told = "same" if same(value, back) else f"{back!r} instead of {value!r}"
            ends.add("refused" if "InvalidOutput" in told or "InvalidPayload" in told else told)

    @FUZZ
    @given(st.lists(VALUES, min_size=20, max_size=40))
    def fuzz(given_values):
        values[:] = given_values
        fuzz_worker.run(step())

    fuzz_worker.open()
    fuzz()
    assert ends == {"same", "refused"}


def test_keys_are_kept_apart_or_refused(fuzz_worker):
    """Two keys are the same only if they are equal, also with any Unicode."""
    stands: dict[str, object] = {}

    @fuzz_worker.app.job
    async def work() -> None: ...

    async def step(keys: list[str]) -> None:
        for key in keys:
            try:
                handle = await work.using(key=key, key_for="forever").enqueue()
            except InvalidPayload:
                assert not key or "\x00" in key or any("\ud800" <= letter <= "\udfff" for letter in key)
            else:
                assert stands.setdefault(key, handle.id) == handle.id
        assert len(set(stands.values())) == len(stands)

    @FUZZ
    @given(st.lists(TEXT, min_size=5, max_size=30))
    def fuzz(keys):
        fuzz_worker.run(step(keys))

    fuzz_worker.open()
    fuzz()
