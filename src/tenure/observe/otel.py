"""OpenTelemetry: `instrument(app)` makes spans of enqueues, attempts and steps of workflows, and metrics of the first two.

Names and attributes follow the semantic conventions for messaging. The context of a trace travels in the headers of a job.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal

from opentelemetry import context as contexts
from opentelemetry import metrics, propagate, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider

from tenure.app import Tenure
from tenure.client.calls import Call
from tenure.model.events import StepEnded, WorkerStopped
from tenure.model.outcomes import Fail, Outcome
from tenure.version import __version__
from tenure.worker.run.context import Context
from tenure.worker.run.middleware import CallNext

Parent = Literal["first", "always", "never"]
SYSTEM = "tenure"
BATCH = "tenure-batch"
"""A header of jobs that were enqueued together: they are linked to their span, because one trace would become too large."""
FLUSH_WITHIN = 2000
"""Milliseconds, when a worker stops or a handler's process has run a job."""


def instrument(
    app: Tenure,
    *,
    parent: Parent = "first",
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Call it once, where the app is defined, so that workers run it as well.

    `parent`: which attempts belong to the trace of the enqueue: the "first" of a job that was enqueued alone, "always", or
    "never". All others begin a trace of their own, with a link to the span of the enqueue.
    """
    telemetry = Telemetry(parent, tracer_provider or trace.get_tracer_provider(), meter_provider or metrics.get_meter_provider())
    app.around_enqueue(telemetry.around_enqueue)
    app.kinds.middleware.insert(0, telemetry.around_attempt)
    app.around_thread(telemetry.in_thread)
    app.around_coroutine(telemetry.in_coroutine)
    app.on(StepEnded)(telemetry.record_step)
    app.on(WorkerStopped)(telemetry.flush)


class Telemetry:
    def __init__(self, parent: Parent, tracers: TracerProvider, meters: MeterProvider) -> None:
        self._parent = parent
        self._providers = (tracers, meters)
        self._tracer = tracers.get_tracer("tenure", __version__)
        meter = meters.get_meter("tenure", __version__)
        self._sent = meter.create_counter("messaging.client.sent.messages", "{message}", "Jobs that were enqueued.")
        self._consumed = meter.create_counter("messaging.client.consumed.messages", "{message}", "Attempts that were started.")
        self._sending = meter.create_histogram("messaging.client.operation.duration", "s", "Duration of an enqueue.")
        self._processing = meter.create_histogram("messaging.process.duration", "s", "Duration of an attempt.")
        self._waiting = meter.create_histogram("tenure.job.wait.duration", "s", "From the enqueue of a job to an attempt.")

    # Enqueuing

    @contextmanager
    def around_enqueue(self, calls: Sequence[Call[Any]]) -> Iterator[Sequence[Call[Any]]]:
        queues = sorted({call.fields.queue for call in calls})
        about = {**_about("send", ",".join(queues)), **_about_calls(calls)}
        began, failed = time.perf_counter(), ""
        with self._tracer.start_as_current_span(f"send {','.join(queues)}", kind=SpanKind.PRODUCER, attributes=about) as span:
            headers: dict[str, str] = {} if len(calls) == 1 else {BATCH: str(len(calls))}
            propagate.inject(headers)
            try:
                yield [call.with_headers({**headers, **call.headers}) for call in calls]
            except BaseException as error:
                failed = _type_of(error)
                span.set_attribute("error.type", failed)
                raise
            finally:
                common = {**_about("send", ",".join(queues)), **({"error.type": failed} if failed else {})}
                self._sending.record(time.perf_counter() - began, common)
                self._sent.add(len(calls), common)

    # Running

    async def around_attempt(self, ctx: Context, call_next: CallNext) -> Any:
        about = _about("process", ctx.queue)
        creation = propagate.extract(ctx.headers)
        created = trace.get_current_span(creation).get_span_context()
        is_child = created.is_valid and self._is_child(ctx)
        self._consumed.add(1, {**about, "tenure.job.kind": ctx.kind})
        if ctx.enqueued_at is not None:
            waited = time.time() - ctx.enqueued_at.timestamp()
            self._waiting.record(max(0.0, waited), {"messaging.destination.name": ctx.queue, "tenure.job.kind": ctx.kind})
        with self._tracer.start_as_current_span(
            f"job:{ctx.kind}",
            context=creation if is_child else contexts.Context(),
            kind=SpanKind.CONSUMER,
            links=[Link(created)] if created.is_valid and not is_child else [],
            attributes={**about, **_about_run(ctx)},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            if ctx._run.kind.run_in == "process":  # noqa: SLF001 - not part of the public API
                own: dict[str, str] = {}
                propagate.inject(own)
                ctx.add_headers(own)
            return await self._measured(ctx, span, call_next)

    async def _measured(self, ctx: Context, span: Span, call_next: CallNext) -> Any:
        began, failed = time.perf_counter(), ""
        try:
            result = await call_next()
            failed = _failure_of(span, result)
            return result
        except BaseException as error:
            failed = _failure_of(span, error, ctx)
            raise
        finally:
            about = {**_about("process", ctx.queue), "tenure.job.kind": ctx.kind}
            self._processing.record(time.perf_counter() - began, {**about, **({"error.type": failed} if failed else {})})

    def _is_child(self, ctx: Context) -> bool:
        if self._parent == "first":
            return ctx.fence == 1 and BATCH not in ctx.headers
        return self._parent == "always"

    def record_step(self, event: StepEnded) -> None:
        """A span of a step that has ended, below that of its run: a workflow reports its steps in its own task."""
        now = time.time_ns()
        span = self._tracer.start_span(
            f"step:{event.step}", start_time=now - int(event.ran * 1e9), attributes=_about_step(event), record_exception=False
        )
        if event.error is not None:
            span.set_status(Status(StatusCode.ERROR, event.error))
        span.end(now)

    # In the process of a handler: spans of its own are children of the attempt

    @contextmanager
    def in_thread(self, ctx: Context) -> Iterator[None]:
        with self._attached(ctx):
            yield

    async def in_coroutine(self, ctx: Context) -> AsyncIterator[None]:
        with self._attached(ctx):
            yield

    @contextmanager
    def _attached(self, ctx: Context) -> Iterator[None]:
        if trace.get_current_span().get_span_context().is_valid:  # in the worker's own process
            yield
            return
        token = contexts.attach(propagate.extract(ctx.headers))
        try:
            yield
        finally:
            contexts.detach(token)
            self.flush()

    def flush(self, _: object = None) -> None:
        """Sends what is collected. The process may be killed right after."""
        for provider in self._providers:
            if (flush := getattr(provider, "force_flush", None)) is not None:
                with suppress(Exception):
                    flush(FLUSH_WITHIN)


def _about(operation: str, queue: str) -> dict[str, str]:
    return {
        "messaging.system": SYSTEM,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": queue,
    }


def _about_calls(calls: Sequence[Call[Any]]) -> dict[str, Any]:
    kinds = sorted({call.kind for call in calls})
    if len(calls) == 1:
        return {"messaging.message.id": str(calls[0].id), "tenure.job.kind": kinds[0]}
    return {"messaging.batch.message_count": len(calls), "tenure.job.kinds": kinds}


def _about_run(ctx: Context) -> dict[str, Any]:
    return {
        "messaging.message.id": str(ctx.job_id),
        "messaging.client.id": str(ctx.worker_id),
        "tenure.job.kind": ctx.kind,
        "tenure.job.attempt": ctx.attempt,
        "tenure.job.max_attempts": ctx.max_attempts,
    }


def _about_step(event: StepEnded) -> dict[str, Any]:
    return {
        "messaging.message.id": str(event.job_id),
        "tenure.job.kind": event.kind,
        "tenure.step.name": event.step,
        "tenure.step.what": event.what,
        "tenure.step.state": event.state,
        "tenure.step.attempts": event.attempts,
    }


def _failure_of(span: Span, ended: object, ctx: Context | None = None) -> str:
    """Marks the span, and returns the type of the error; empty if the attempt did not fail."""
    if isinstance(ended, Outcome):
        span.set_attribute("tenure.job.outcome", type(ended).__name__)
        if not isinstance(ended, Fail):
            return ""
    elif not isinstance(ended, BaseException):
        return ""
    failed = _type_of(ended)
    if ctx is not None and ctx.signal.aborted:
        failed = str(ctx.signal.reason)
    span.set_attribute("error.type", failed)
    span.set_status(Status(StatusCode.ERROR, f"{ended}"))
    if not isinstance(ended, Outcome):
        span.record_exception(ended)
    return failed


def _type_of(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
