"""`Annotated[Session, Provide(get_session)]`: values for handlers that are not part of the job's input."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Annotated

import pytest
from fastapi import Depends

from tenure import ConfigError, Context, InvalidInput, Provide, Tenure, provided
from tenure.testing import bound, context, drain, override, run_inline, temporary_database

SEEN: list[object] = []


class Session:
    def __init__(self, name: str = "real") -> None:
        self.name = name


async def get_session() -> AsyncIterator[Session]:
    SEEN.append("open")
    try:
        yield Session()
    except ValueError:
        SEEN.append("rolled back")
        raise
    finally:
        SEEN.append("closed")


def get_plain() -> Iterator[Session]:
    SEEN.append(("open in", threading.current_thread()))
    yield Session("plain")
    SEEN.append(("closed in", threading.current_thread()))


async def get_settings() -> dict[str, int]:
    SEEN.append("settings")
    return {"limit": 3}


def get_user(ctx: Context, settings: Annotated[dict[str, int], Provide(get_settings)]) -> tuple[str, int]:
    return ctx.kind, settings["limit"]


@pytest.fixture
def app():
    SEEN.clear()
    return Tenure("postgresql://nowhere.invalid/test", log_failed_attempt="debug")


@pytest.fixture
def inline(app):
    with run_inline(app):
        yield


async def test_a_generator_is_closed_after_the_run(app, inline):
    @app.job
    async def work(n: int, session: Annotated[Session, Provide(get_session)] = provided) -> str:
        SEEN.append("handler")
        return f"{session.name} {n}"

    assert await (await work.enqueue(1)).result() == "real 1"
    assert SEEN == ["open", "handler", "closed"]


async def test_an_error_of_the_handler_is_raised_in_the_generator(app, inline):
    @app.job(max_attempts=1)
    async def work(session: Annotated[Session, Provide(get_session)]) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await work.enqueue()
    assert SEEN == ["open", "rolled back", "closed"]


async def test_a_provider_cannot_turn_a_failure_into_a_success(app, inline):
    def swallow() -> Iterator[int]:
        with suppress(ValueError):
            yield 1

    @app.job(max_attempts=1)
    async def work(n: Annotated[int, Provide(swallow)]) -> None:
        raise ValueError("no")

    @app.job(max_attempts=1)
    def plain(n: Annotated[int, Provide(swallow)]) -> None:
        raise ValueError("no")

    for job in (work, plain):
        with pytest.raises(ValueError, match="no"):
            await job.enqueue()


def test_plain_handlers_get_theirs_in_their_thread(app, inline):
    @app.job
    def work(session: Annotated[Session, Provide(get_plain)]) -> str:
        return session.name

    assert work.enqueue_sync().result_sync() == "plain"
    here = threading.current_thread()
    assert [("open in", here), ("closed in", here)] == SEEN


async def test_providers_need_the_context_and_each_other_and_run_once(app, inline):
    @app.job
    async def work(
        user: Annotated[tuple[str, int], Provide(get_user)],
        settings: Annotated[dict[str, int], Provide(get_settings)],
    ) -> list[object]:
        return [*user, settings["limit"]]

    assert await (await work.enqueue()).result() == ["work", 3, 3]
    assert SEEN == ["settings"]


async def test_without_a_cache(app, inline):
    fresh = Provide(get_settings, use_cache=False)

    @app.job
    async def work(a: Annotated[dict[str, int], fresh], b: Annotated[dict[str, int], fresh]) -> bool:
        return a is b

    assert await (await work.enqueue()).result() is False


async def test_depends_of_fastapi_is_understood(app, inline):
    def get_session_of_fastapi(settings: Annotated[dict[str, int], Depends(get_settings)]) -> Iterator[int]:
        yield settings["limit"]

    @app.job
    async def work(limit: Annotated[int, Depends(get_session_of_fastapi)], session: Annotated[Session, Depends()]) -> str:
        return f"{limit} {session.name}"

    assert await (await work.enqueue()).result() == "3 real"


async def test_it_is_not_part_of_the_input(app):
    @app.job
    async def work(n: int, session: Annotated[Session, Provide(get_session)] = provided) -> None: ...

    assert set(work.schema()["properties"]) == {"n"}
    with pytest.raises(InvalidInput, match="session"):
        work.call(1, session=Session())


async def test_a_direct_call_takes_any_value(app):
    @app.job
    async def work(ctx: Context, n: int, session: Annotated[Session, Provide(get_session)] = provided) -> str:
        return f"{session.name} {n} {ctx.attempt}"

    assert await work(context(), 1, session=Session("fake")) == "fake 1 1"


async def test_tests_put_others_in_their_place(app, inline):
    @app.job
    async def work(session: Annotated[Session, Provide(get_session)] = provided) -> str:
        return session.name

    def fake() -> Iterator[Session]:
        yield Session("fake")
        SEEN.append("fake closed")

    with override(app, {get_session: fake}):
        assert await (await work.enqueue()).result() == "fake"
    assert SEEN == ["fake closed"]
    assert await (await work.enqueue()).result() == "real"


@pytest.mark.parametrize("run_in", [None, "process"])
async def test_in_a_worker(server_dsn, run_in):
    from tests.dependencies import provided_jobs

    with temporary_database(server_dsn) as dsn, bound(provided_jobs.app, dsn) as app:
        jobs = [provided_jobs.on_loop, provided_jobs.in_thread] if run_in is None else [provided_jobs.in_process]
        for job in jobs:
            await job.enqueue(1)
        runs = await drain(app)
    assert [(run.kind, run.output) for run in runs] == [(job.name, "session of 1, open") for job in jobs]


async def test_in_a_workflow_they_are_provided_in_every_run(server_dsn):
    from tests.dependencies import provided_jobs

    with temporary_database(server_dsn) as dsn, bound(provided_jobs.app, dsn) as app:
        await provided_jobs.as_workflow.enqueue(1)
        *_, last = await drain(app, skip_sleeps=True)
    assert last.output == "session of 1, open"


def test_mistakes_are_reported_where_the_job_is_defined(app):
    def needs(n: int) -> int:
        return n

    def around(a: Annotated[int, Provide(lambda: 1)]) -> int:
        return a

    with pytest.raises(ConfigError, match=r"nothing provides its parameter 'n'"):
        app.job(lambda_job(Annotated[int, Provide(needs)]))
    with pytest.raises(ConfigError, match="give a function"):
        app.job(lambda_job(Annotated[int, Provide(3)]))
    with pytest.raises(ConfigError, match="provided by asynchronous code, but job is a plain function"):
        app.job(lambda_job(Annotated[Session, Provide(get_session)]))
    around.__annotations__["a"] = Annotated[int, Provide(around)]
    with pytest.raises(ConfigError, match="it depends on itself"):
        app.job(lambda_job(Annotated[int, Provide(around)]))


def lambda_job(annotation):
    def job(value):
        return value

    job.__annotations__["value"] = annotation
    job.__qualname__ = "job"
    return job
