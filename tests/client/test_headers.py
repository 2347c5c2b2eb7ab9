"""Headers of a job: added around its enqueue, read by its handler, kept for as long as the job is known."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import psycopg
import pytest

from tenure import Call, CallNext, Context, Continue, InvalidPayload, Retry, Tenure, WorkflowContext
from tenure.testing import context, drain, enqueued, run_inline, workflow_context
from tenure.web.security.redaction import Redaction

TRACE = {"traceparent": "00-1-2-01", "baggage": "tenant=blue"}
AT_ONCE = Retry(max_attempts=2, backoff="fixed", initial="1ms", jitter=False)


@pytest.fixture
def seen() -> list[dict[str, str]]:
    return []


@pytest.fixture
async def app(dsn: str) -> Any:
    app = Tenure(dsn)
    yield app
    await app.close()


def number_enqueues(app: Tenure) -> None:
    """Each enqueue adds a header with its number, as a trace adds the id of a span."""
    numbers = iter(range(1, 100))

    @app.around_enqueue
    def add_number(calls: Sequence[Call[Any]]) -> Iterator[Sequence[Call[Any]]]:
        number = str(next(numbers))
        yield [call.with_headers(number=number) for call in calls]


async def test_they_reach_the_handler_apart_from_its_meta(app, seen):
    @app.job
    def work(ctx: Context) -> dict[str, Any]:
        seen.append(dict(ctx.headers))
        with pytest.raises(TypeError):
            ctx.headers["a"] = "b"
        return ctx.meta

    plain, traced = await app.enqueue_many([work.call(), work.using(meta={"a": 1}).call().with_headers(TRACE)])
    await drain(app)
    assert seen == [{}, TRACE]
    assert (await plain.status()).system is None
    status = await traced.status()
    assert (status.meta, status.output, status.system, status.headers) == ({"a": 1}, {"a": 1}, {"headers": TRACE}, TRACE)
    assert [line for line in str(await traced.report()).splitlines() if "traceparent" in line]


@pytest.mark.parametrize("options", [{}, {"key": "k"}, {"delay": 0.001}, {"priority": "low"}], ids=str)
async def test_every_way_to_enqueue_stores_them(app, dsn, options):
    number_enqueues(app)

    @app.job
    def work() -> None: ...

    await work.using(**options).enqueue()
    with psycopg.connect(dsn) as connection:
        work.using(**(options | ({"key": "other"} if "key" in options else {})), conn=connection).enqueue_sync()
    await asyncio.to_thread(work.enqueue_sync)
    assert [dict(job.headers) for job in await enqueued(app)] == [{"number": str(n)} for n in (1, 2, 3)]


async def test_blockers_are_noted_beside_them(app):
    number_enqueues(app)

    @app.job
    def work() -> None: ...

    first = await work.enqueue()
    second = await work.using(after=[first]).enqueue()
    assert (await second.status()).system == {"headers": {"number": "2"}, "blockers": 1}


async def test_retries_and_replays_have_those_of_the_job(app, seen):
    number_enqueues(app)

    @app.job(retry=AT_ONCE)
    def fails(ctx: Context) -> None:
        seen.append(dict(ctx.headers))
        if len(seen) < 4:
            raise ValueError

    handle = await fails.enqueue()
    await drain(app, retries=True)
    await handle.retry()  # a dead letter: the same job
    await drain(app, retries=True)
    again = await handle.retry()  # completed: a new job
    await drain(app)
    assert again.id != handle.id
    assert seen == [{"number": "1"}] * 5
    assert (await again.status()).system == {"headers": {"number": "1"}, "retry_of": str(handle.id)}


async def test_children_and_links_have_those_of_their_own_enqueue(app, seen):
    number_enqueues(app)

    @app.job
    def child(ctx: Context) -> None:
        seen.append(dict(ctx.headers))

    @app.job
    async def first(ctx: Context) -> Continue[None]:
        seen.append(dict(ctx.headers))
        await child.enqueue()
        return Continue(child)

    await first.enqueue()
    await drain(app)
    assert sorted(one["number"] for one in seen) == ["1", "2", "3"]
    [link] = [job for job in await enqueued(child) if (await app.client().find(job.id)).system.get("link")]
    assert link.headers == {"number": "3"}


async def test_a_workflow_that_begins_again_keeps_them(app, seen):
    @app.workflow
    async def flow(ctx: WorkflowContext, n: int) -> Any:
        seen.append(dict(ctx.headers))
        return n if n == 2 else ctx.continue_as_new(n + 1)

    await app.enqueue_many([flow.call(1).with_headers(TRACE)])
    await drain(app)
    assert seen == [TRACE, TRACE]


async def test_a_workflow_that_begins_again_does_not_keep_what_one_run_was_given(app, seen):
    @app.middleware
    async def add(ctx: Context, call_next: CallNext) -> Any:
        ctx.add_headers(traceparent="of this run")
        ctx.add_headers(span="a")
        return await call_next()

    @app.workflow
    async def flow(ctx: WorkflowContext, n: int) -> Any:
        return n if n == 2 else ctx.continue_as_new(n + 1)

    await app.enqueue_many([flow.call(1).with_headers(TRACE)])
    await drain(app)
    assert [dict(job.headers) for job in await enqueued(app)] == [TRACE] * 2


@pytest.mark.parametrize("headers", [{}, TRACE], ids=["none", "some"])
async def test_what_holds_them_can_be_copied_pickled_and_encoded(app, headers):
    @app.job
    def work(ctx: Context) -> dict[str, str]:
        return dict(json.loads(json.dumps(ctx.headers)))

    call = work.call().with_headers(headers)
    assert pickle.loads(pickle.dumps(call.headers)) == copy.deepcopy(call.headers) == headers
    handle = (await app.enqueue_many([call]))[0]
    [job] = await enqueued(app)
    assert (asdict(job)["headers"], copy.deepcopy(job), pickle.loads(pickle.dumps(job))) == (headers, job, job)
    await drain(app)
    assert await handle.result() == headers
    for change in (lambda: call.headers.update(a="b"), lambda: call.headers.pop("traceparent", None), call.headers.clear):
        with pytest.raises(TypeError, match="read-only"):
            change()


async def test_middleware_adds_some_for_one_run(app, seen):
    @app.middleware
    async def add(ctx: Context, call_next: CallNext) -> Any:
        ctx.add_headers({"span": "a", "traceparent": "new"})
        with pytest.raises(InvalidPayload, match="the headers of job 'work' must be texts"):
            ctx.add_headers({"span": 7})
        return await call_next()

    @app.job
    def work(ctx: Context) -> None:
        seen.append(dict(ctx.headers))

    [plain, traced] = await app.enqueue_many([work.call(), work.call().with_headers(TRACE)])
    await drain(app)
    added = {"span": "a", "traceparent": "new"}
    assert seen == [added, {**TRACE, **added}]
    assert [dict((await handle.status()).headers) for handle in (plain, traced)] == [{}, TRACE]


@pytest.mark.parametrize("written", ['{"headers": 1}', '{"headers": {"a": 1, "b": "c"}}', '"headers"', "[]", "1"])
async def test_what_sql_wrote_instead_is_left_out(app, database, seen, written):
    @app.job
    def work(ctx: Context) -> None:
        seen.append(dict(ctx.headers))
        ctx.add_headers(d="e")
        seen.append(dict(ctx.headers))

    database.sql('select tenure.enqueue(\'[{"kind": "work", "system": %s}]\')' % written)  # noqa: UP031
    await drain(app)
    stored = {"b": "c"} if "b" in written else {}
    assert seen == [stored, {**stored, "d": "e"}]
    [done] = await enqueued(app)
    again = await app.client().handle(done.id).retry()
    assert (await again.status()).system["retry_of"] == str(done.id)


@pytest.mark.parametrize("written", ['{"headers": {"b": "c"}}', '"headers"', "[]"])
async def test_a_workflow_begins_from_a_step_whatever_sql_wrote(app, database, written):
    @app.workflow
    async def flow(ctx: WorkflowContext) -> None:
        await ctx.step("first", lambda: None)

    database.sql("select tenure.enqueue(%s)", f'[{{"kind": "flow", "system": {written}}}]')
    await drain(app)
    [done] = await enqueued(app)
    fork = await app.workflows.fork(done.id, from_step="first")
    assert (await fork.status()).system["forked"] == str(done.id)


async def test_a_secret_among_them_is_hidden_wherever_it_appears(app):
    @app.job
    def work() -> None:
        raise ValueError("refused: open-sesame")

    [handle] = await app.enqueue_many([work.call().with_headers(authorization="open-sesame", traceparent="00-1")])
    await drain(app, retries=True)
    shown = Redaction().job(await handle.status())
    assert shown.headers["traceparent"] == "00-1"
    assert "open-sesame" not in str(shown)


async def test_tests_can_give_them(app, seen):
    @app.job
    def second(ctx: Context) -> None:
        seen.append(dict(ctx.headers))

    @app.job
    def first(ctx: Context) -> Continue[None]:
        seen.append(dict(ctx.headers))
        return Continue(second)

    assert context(first, headers=TRACE, schedule="nightly").headers == TRACE
    assert workflow_context(headers=TRACE).headers == TRACE
    number_enqueues(app)
    with run_inline(app):
        await first.enqueue()
    assert seen == [{"number": "1"}, {"number": "2"}]
