"""OpenTelemetry with its real SDK: spans, links and metrics of enqueues and attempts, over threads and processes."""

from __future__ import annotations

import json
from contextlib import suppress
from textwrap import dedent

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tenure import ConfigError, Context, Continue, Fail, Retry, Snooze, StepFailed, Tenure, WorkflowContext
from tenure.observe.otel import instrument
from tenure.testing import bound, drain, temporary_database
from tests.processes import run_process, worker_process
from tests.waiting import until
from tests.worker.serving import serving

AT_ONCE = Retry(max_attempts=3, backoff="fixed", initial="1ms", jitter=False)


class Collected:
    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader])

    def spans(self, name: str):
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def points(self, name: str):
        """By their attributes: the value, or how many there are."""
        data = self._reader.get_metrics_data()
        found = {}
        for metric in (m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics if m.name == name):
            for point in metric.data.data_points:
                found[frozenset(point.attributes.items())] = getattr(point, "value", None) or getattr(point, "count", None)
        return found


@pytest.fixture
def collected():
    return Collected()


@pytest.fixture
async def app(dsn, collected):
    app = Tenure(dsn)
    instrument(app, tracer_provider=collected.tracers, meter_provider=collected.meters)
    yield app
    await app.close()


async def test_an_attempt_is_a_child_of_the_enqueue_and_the_handlers_spans_are_children_of_the_attempt(app, collected):
    tracer = collected.tracers.get_tracer("shop")

    @app.job(queue="mail")
    def send_mail(ctx: Context) -> str:
        with tracer.start_as_current_span("smtp"):
            return ctx.meta["tenant"]

    async with serving(app):
        with tracer.start_as_current_span("request") as request:
            handle = await send_mail.using(meta={"tenant": "blue"}).enqueue()
        assert await handle.result("30s") == "blue"
        status = await handle.status()
        assert (status.meta, set(status.headers)) == ({"tenant": "blue"}, {"traceparent"})
    [sent], [attempt], [smtp] = (collected.spans(name) for name in ("send mail", "job:send_mail", "smtp"))
    assert (sent.kind, attempt.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert sent.parent.span_id == request.get_span_context().span_id
    assert attempt.parent.span_id == sent.context.span_id
    assert smtp.parent.span_id == attempt.context.span_id
    assert {span.context.trace_id for span in (sent, attempt, smtp)} == {request.get_span_context().trace_id}
    worker = attempt.attributes["messaging.client.id"]
    assert dict(attempt.attributes) == {
        "messaging.system": "tenure",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "mail",
        "messaging.message.id": str(handle.id),
        "messaging.client.id": worker,
        "tenure.job.kind": "send_mail",
        "tenure.job.attempt": 1,
        "tenure.job.max_attempts": 3,
    }


async def test_a_retry_begins_its_own_trace_with_a_link_to_the_enqueue(app, collected):
    @app.job(retry=AT_ONCE)
    async def fails_twice(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ValueError(f"attempt {ctx.attempt}")
        return ctx.attempt

    async with serving(app):
        assert await (await fails_twice.enqueue()).result("30s") == 3
    [sent], attempts = collected.spans("send default"), collected.spans("job:fails_twice")
    assert [attempt.attributes["tenure.job.attempt"] for attempt in attempts] == [1, 2, 3]
    assert [attempt.status.status_code for attempt in attempts] == [StatusCode.ERROR, StatusCode.ERROR, StatusCode.UNSET]
    assert [attempt.attributes.get("error.type") for attempt in attempts] == ["ValueError", "ValueError", None]
    assert attempts[0].events[0].attributes["exception.message"] == "attempt 1"
    assert attempts[0].parent.span_id == sent.context.span_id
    assert [attempt.parent for attempt in attempts[1:]] == [None, None]
    assert [[link.context.span_id for link in attempt.links] for attempt in attempts[1:]] == [[sent.context.span_id]] * 2
    assert len({attempt.context.trace_id for attempt in attempts}) == 3


async def test_jobs_of_a_batch_are_linked_because_one_trace_would_become_too_large(app, collected):
    @app.job
    async def work(number: int) -> None: ...

    async with serving(app):
        handles = await app.enqueue_many([work.call(number) for number in range(3)])
        for handle in handles:
            await handle.result("30s")
    [sent], attempts = collected.spans("send default"), collected.spans("job:work")
    assert sent.attributes["messaging.batch.message_count"] == 3
    assert [(attempt.parent, attempt.links[0].context.span_id) for attempt in attempts] == [(None, sent.context.span_id)] * 3


async def test_children_of_a_job_continue_its_trace(app, collected):
    @app.job
    def child() -> None: ...

    @app.job
    async def parent() -> None:
        await child.enqueue()

    async with serving(app):
        await (await parent.enqueue()).result("30s")
        await until(lambda: collected.spans("job:child"))
    assert len({span.context.trace_id for name in ("job:parent", "job:child") for span in collected.spans(name)}) == 1


async def test_the_next_links_of_a_chain_continue_its_trace(app, collected):
    @app.job
    async def last(number: int) -> int:
        return number

    @app.job
    async def first() -> Continue:
        return Continue(last, 7)

    async with serving(app):
        assert await (await first.enqueue()).result("30s") == 7
        await until(lambda: collected.spans("job:last"))
    [attempt], [following] = collected.spans("job:first"), collected.spans("job:last")
    [sent] = [span for span in collected.spans("send default") if span.attributes["tenure.job.kind"] == "last"]
    assert (following.parent.span_id, sent.parent.span_id) == (sent.context.span_id, attempt.context.span_id)


@pytest.fixture
async def travelling(app, server_dsn):
    """The app on a database whose clock can be set."""
    with temporary_database(server_dsn) as dsn, bound(app, dsn):
        yield app
        await app.close()


async def test_the_first_run_of_a_workflow_is_a_child_of_the_enqueue_and_later_ones_are_linked_to_it(travelling, collected):
    @travelling.workflow
    async def ship(ctx: WorkflowContext, label: str) -> None:
        await ctx.sleep("cool down", "1h")

    await ship.enqueue("parcel")
    assert [run.what for run in await drain(travelling, skip_sleeps=True)] == ["suspended", "completed"]
    [sent], [first, second] = collected.spans("send default"), collected.spans("job:ship")
    assert (first.parent.span_id, first.links) == (sent.context.span_id, ())
    assert (second.parent, [link.context.span_id for link in second.links]) == (None, [sent.context.span_id])
    assert [run.attributes.get("tenure.job.outcome") for run in (first, second)] == ["Suspend", None]
    assert {run.attributes["tenure.job.attempt"] for run in (first, second)} == {1}
    assert {run.status.status_code for run in (first, second)} == {StatusCode.UNSET}


async def test_a_step_is_a_child_of_the_run_in_which_it_ran_and_is_not_repeated_by_a_replay(travelling, collected):
    tracer = collected.tracers.get_tracer("shop")

    def pack() -> None:
        with tracer.start_as_current_span("tape"):
            pass

    async def refuse() -> None:
        raise ValueError("no stamps")

    @travelling.workflow
    async def ship(ctx: WorkflowContext) -> None:
        await ctx.step("pack", pack)
        await ctx.sleep("cool down", "1h")
        with suppress(StepFailed):
            await ctx.step("stamp", refuse)

    await ship.enqueue()
    await drain(travelling, skip_sleeps=True)
    [first, second], [packed], [stamped], [tape] = map(collected.spans, ("job:ship", "step:pack", "step:stamp", "tape"))
    assert [span.parent.span_id for span in (packed, stamped, tape)] == [
        first.context.span_id, second.context.span_id, first.context.span_id,
    ]  # fmt: skip
    assert (packed.status.status_code, packed.attributes["tenure.step.state"]) == (StatusCode.UNSET, "done")
    assert (stamped.status.status_code, stamped.status.description) == (StatusCode.ERROR, "no stamps")
    assert first.start_time <= packed.start_time <= packed.end_time <= first.end_time


@pytest.mark.parametrize(
    ("outcome", "status", "type_"),
    [(Snooze("1h"), StatusCode.UNSET, None), (Fail("no such user"), StatusCode.ERROR, "tenure.model.outcomes.Fail")],
)
async def test_outcomes_are_not_errors_unless_the_job_failed(app, collected, outcome, status, type_):
    @app.job
    async def decide():
        raise outcome

    async with serving(app):
        await decide.enqueue()
        [attempt] = await until(lambda: collected.spans("job:decide"))
    assert (attempt.status.status_code, attempt.attributes.get("error.type")) == (status, type_)
    assert attempt.attributes["tenure.job.outcome"] == type(outcome).__name__
    assert attempt.events == ()


async def test_metrics_follow_the_conventions_for_messaging(app, collected):
    @app.job(retry=AT_ONCE)
    async def fails_once(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise KeyError

    async with serving(app):
        await (await fails_once.enqueue()).result("30s")
    common = {"messaging.system": "tenure", "messaging.destination.name": "default"}
    send = common | {"messaging.operation.name": "send", "messaging.operation.type": "send"}
    process = common | {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "tenure.job.kind": "fails_once",
    }
    assert collected.points("messaging.client.sent.messages") == {frozenset(send.items()): 1}
    assert collected.points("messaging.client.operation.duration") == {frozenset(send.items()): 1}
    assert collected.points("messaging.client.consumed.messages") == {frozenset(process.items()): 2}
    assert collected.points("messaging.process.duration") == {
        frozenset(process.items()): 1,
        frozenset((process | {"error.type": "KeyError"}).items()): 1,
    }
    assert sum(collected.points("tenure.job.wait.duration").values()) == 2


async def test_an_enqueue_that_fails_is_an_error(dsn, collected):
    app = Tenure(f"{dsn} port=1", client_timeout_seconds=0.1)
    instrument(app, tracer_provider=collected.tracers, meter_provider=collected.meters)

    @app.job
    def work() -> None: ...

    with pytest.raises(Exception, match="did not confirm the job"):
        work.enqueue_sync()
    [sent] = collected.spans("send default")
    assert (sent.status.status_code, sent.attributes["error.type"]) == (StatusCode.ERROR, "tenure.model.errors.StoreUnavailable")
    app.close_sync()


async def test_a_hook_must_keep_the_calls(app):
    @app.job
    def work() -> None: ...

    @app.around_enqueue
    def lose(calls):
        yield calls[:-1]

    with pytest.raises(ConfigError, match="gave other calls"):
        await work.enqueue()
    with pytest.raises(ConfigError, match="is asynchronous"):
        app.around_enqueue(test_a_hook_must_keep_the_calls)


PROJECT = """
    import json, os
    from pathlib import Path
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from tenure import Tenure
    from tenure.observe.otel import instrument

    class Lines(SpanExporter):
        def export(self, spans):
            with Path("spans.jsonl").open("a") as out:
                for span in spans:
                    out.write(json.dumps({
                        "name": span.name, "span": span.context.span_id, "trace": span.context.trace_id,
                        "parent": span.parent and span.parent.span_id, "pid": os.getpid(),
                    }) + "\\n")
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Lines()))
    trace.set_tracer_provider(provider)
    app = Tenure()
    instrument(app)
    tracer = trace.get_tracer("shop")

    @app.job(run_in="process")
    def resize() -> None:
        with tracer.start_as_current_span("pixels"):
            pass

    @app.job
    def thumbnail() -> None:
        with tracer.start_as_current_span("small pixels"):
            pass
    """


async def test_a_trace_continues_over_the_processes_of_client_worker_and_handler(dsn, project, sql):
    (project / "jobs.py").write_text(dedent(PROJECT))
    program = "import jobs; jobs.resize.enqueue_sync(); jobs.thumbnail.enqueue_sync(); jobs.provider.force_flush()"
    import sys

    env = {**__import__("os").environ, "TENURE_DSN": dsn}
    run_process([sys.executable, "-c", program], cwd=project, env=env, check=True, timeout=60)
    with worker_process(project, dsn) as worker:
        await until(lambda: sql("select count(*) from tenure.history"), is_=[(2,)], within=30)
        worker.terminate()
        worker.wait(30)
    spans = [json.loads(line) for line in (project / "spans.jsonl").read_text().splitlines()]
    by_name = {span["name"]: span for span in spans}
    assert set(by_name) == {"send default", "job:resize", "job:thumbnail", "pixels", "small pixels"}
    sent = {span["span"] for span in spans if span["name"] == "send default"}
    for attempt, inner in (("job:resize", "pixels"), ("job:thumbnail", "small pixels")):
        assert by_name[attempt]["parent"] in sent
        assert by_name[inner]["parent"] == by_name[attempt]["span"]
        assert by_name[inner]["trace"] == by_name[attempt]["trace"]
    assert len({by_name[name]["pid"] for name in ("send default", "job:resize", "pixels")}) == 3
