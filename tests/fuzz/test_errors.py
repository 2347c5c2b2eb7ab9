"""After any error of a handler, its job reaches a state that the table of moves allows, and its worker continues."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure import Cancel, Context, Fail, JobUnfinished, Retry, Snooze
from tests.fuzz.values import EXAMPLES, TEXT

FUZZ = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Wordy(Exception):
    def __str__(self) -> str:
        return "\x00\ud800" * 200_000


class Endless(Exception):
    """A cause that leads back to itself."""

    def __init__(self) -> None:
        super().__init__("round")
        self.__cause__ = self


class Twisted(Exception):
    def __init_subclass__(cls) -> None: ...
    def __getattribute__(self, name):
        if name in ("__notes__", "args"):
            raise AttributeError(name)
        return super().__getattribute__(name)


def deep_group(depth: int) -> BaseException:
    error: Exception = ValueError("deep")
    for _ in range(depth):
        error = ExceptionGroup("level", [error])
    return error


def noted(note: str) -> Exception:
    error = ValueError("noted")
    error.add_note(note)
    return error


EXCEPTIONS = st.one_of(
    st.builds(ValueError, TEXT),
    st.builds(lambda text: KeyError(text, text), TEXT),
    st.builds(lambda text: type("Odd" + "x" * (len(text) % 5), (Exception,), {"__module__": text})(text), TEXT),
    st.builds(noted, TEXT),
    st.builds(deep_group, st.sampled_from([1, 5, 40, 300])),
    st.builds(Fail, TEXT),
    st.builds(Cancel, TEXT),
    st.sampled_from(
        [
            Unspeakable(),
            Wordy(),
            Endless(),
            Twisted("t"),
            RecursionError("r" * 10),
            MemoryError(),
            StopIteration(1),
            StopAsyncIteration(),
            GeneratorExit(),
            SystemExit(3),
            KeyboardInterrupt("no"),
            asyncio.CancelledError("own"),
            TimeoutError(),
            AssertionError(),
            OSError(2, "gone", "file\x00name"),
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
            Snooze("1h"),
            BaseException("base"),
        ]
    ),
)


@pytest.mark.parametrize("run_in", ["loop", "thread"])
def test_after_any_error_the_job_reaches_a_known_state(fuzz_worker, sql, logged, run_in):
    raised: list[BaseException] = []
    ends: Counter[str] = Counter()

    def explode(ctx: Context, place: int) -> None:
        raise raised[place]

    async def explode_async(ctx: Context, place: int) -> None:
        raise raised[place]

    function = explode if run_in == "thread" else explode_async
    job = fuzz_worker.app.job(name="explode", run_in=run_in, retry=Retry(max_attempts=1))(function)

    @fuzz_worker.app.job
    async def fine() -> str:
        return "fine"

    async def step() -> None:
        handles = await fuzz_worker.app.enqueue_many([job.call(place) for place in range(len(raised))])
        for handle, error in zip(handles, raised, strict=True):
            if not isinstance(error, Snooze):
                with pytest.raises(JobUnfinished):
                    await handle.result("60s")
            status = await handle.status()
            while isinstance(error, Snooze) and status.state in ("pending", "running"):
                await asyncio.sleep(0.01)
                status = await handle.status()
            ends[str(status.state)] += 1
            assert status.state in ("dead_letter", "failed", "canceled", "scheduled"), (error, status)
        assert await (await fine.enqueue()).result("60s") == "fine"

    @FUZZ
    @given(st.lists(EXCEPTIONS, min_size=5, max_size=25))
    def fuzz(errors):
        raised[:] = errors
        fuzz_worker.run(step())

    fuzz_worker.open()
    fuzz()
    assert sum(ends.values()) > 7 * EXAMPLES
    assert (logged.failures > 5 * EXAMPLES, logged.faults) == (True, [])
    assert sql("select count(*) from tenure.jobs where state in ('pending', 'running')") == [(0,)]
