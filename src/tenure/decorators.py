"""The decorators of an app: what makes jobs, schedules, limits, middleware and subscribers of functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, overload

from tenure.client.job import DefinedJobs, Job
from tenure.client.runtime import ClientRuntime
from tenure.model.declared import schedule_of
from tenure.model.definitions import JOB_OPTIONS, JobOptions, define
from tenure.model.durations import Duration
from tenure.model.errors import ConfigError
from tenure.model.event_bus import Events
from tenure.model.kinds import Middleware, Registry, RunIn
from tenure.model.limits import LimitGiven, RateGiven, to_rules
from tenure.model.names import check_name
from tenure.model.options import check_option_names, checks_options
from tenure.model.retries import Retry
from tenure.model.schedules import DEFAULT_LIMIT, CatchUp, Overlap
from tenure.worker.run.context import Context

# Most processes that enqueue define no workflows and subscribe to no events.
if TYPE_CHECKING:
    from tenure.flow.context import WorkflowContext
    from tenure.flow.decorating import Step, StepDecorator, WorkflowDecorator
    from tenure.model.events import Event

Q = ParamSpec("Q")
P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
M = TypeVar("M", bound=Middleware)
S = TypeVar("S", bound=Callable[..., Any])
H = TypeVar("H", bound=Callable[..., Any])


class JobDecorator(Protocol):
    """Keeps the function's types: of a direct call, of an enqueue, and of the result."""

    @overload
    def __call__(
        self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> Job[Concatenate[Context, P], P, Coroutine[Any, Any, R], R]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, P, Coroutine[Any, Any, R], R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> Job[Concatenate[Context, P], P, R, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Job[P, P, R, R]: ...


class Function(Protocol[P, T_co]):
    """A function made by `def`, as opposed to other callables, such as jobs."""

    __code__: CodeType

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...


class CronDecorator(Protocol):
    """The same, and returns a job unchanged."""

    @overload
    def __call__(self, fn: Job[Q, P, T, R], /) -> Job[Q, P, T, R]: ...
    @overload
    def __call__(
        self, fn: Function[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> Job[Concatenate[Context, P], P, Coroutine[Any, Any, R], R]: ...
    @overload
    def __call__(self, fn: Function[P, Coroutine[Any, Any, R]], /) -> Job[P, P, Coroutine[Any, Any, R], R]: ...
    @overload
    def __call__(self, fn: Function[Concatenate[Context, P], R], /) -> Job[Concatenate[Context, P], P, R, R]: ...
    @overload
    def __call__(self, fn: Function[P, R], /) -> Job[P, P, R, R]: ...


class JobDecorators:
    """What defines jobs, for an app or for a collection of jobs. Nothing here needs a database."""

    kinds: Registry
    _jobs: DefinedJobs
    _runtime: ClientRuntime

    @property
    def jobs(self) -> DefinedJobs:
        """The jobs that this app defines, by name: `app.jobs["send_email"]`."""
        return self._jobs

    @overload
    def job(
        self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> Job[Concatenate[Context, P], P, Coroutine[Any, Any, R], R]: ...
    @overload
    def job(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, P, Coroutine[Any, Any, R], R]: ...
    @overload
    def job(self, fn: Callable[Concatenate[Context, P], R], /) -> Job[Concatenate[Context, P], P, R, R]: ...
    @overload
    def job(self, fn: Callable[P, R], /) -> Job[P, P, R, R]: ...
    @overload
    def job(self, **options: Unpack[JobOptions]) -> JobDecorator: ...

    def job(self, *given: Callable[..., Any], **options: Any) -> Any:
        """Makes a job of a function. Use it bare, `@app.job`, or with options, `@app.job(queue="mail")`."""
        check_option_names(options, JOB_OPTIONS, what="@app.job")

        def decorate(function: Callable[..., Any]) -> Job[Any, Any, Any, Any]:
            kind = define(
                function,
                context_type=Context,
                default_retry=self._runtime.default_retry,
                route=self._runtime.route,
                **self._job_options(function, options),
            )
            self.kinds.add(kind)
            return self._jobs[kind.name]

        return decorate(*given) if given else decorate

    def _job_options(self, function: Callable[..., Any], given: dict[str, Any]) -> Any:  # noqa: ARG002 - of a collection
        """With the defaults of a collection."""
        return given

    @overload
    def workflow(
        self, fn: Callable[Concatenate[WorkflowContext, P], Coroutine[Any, Any, R]], /
    ) -> Job[Concatenate[WorkflowContext, P], P, Coroutine[Any, Any, R], R]: ...
    @overload
    def workflow(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, P, Coroutine[Any, Any, R], R]: ...
    @overload
    def workflow(self, *, version: str | None = None, **options: Unpack[JobOptions]) -> WorkflowDecorator: ...

    def workflow(self, *given: Callable[..., Any], version: str | None = None, **options: Any) -> Any:
        """Makes a workflow of a coroutine function: a job that records its steps, and continues where it stopped.

        `version`: of its code. Runs that began under a version are claimed only by workers whose code has the same one.
        Other options are those of `@app.job`.
        """
        from tenure.flow.decorating import workflow_kind  # noqa: PLC0415 - see above

        check_option_names(options, [*JOB_OPTIONS, "version"], what="@app.workflow")

        def decorate(function: Callable[..., Any]) -> Job[Any, Any, Any, Any]:
            made = workflow_kind(function, self._runtime.default_retry, version, **self._job_options(function, options))
            kind = replace(made, route=self._runtime.route)
            self.kinds.add(kind)
            return self._jobs[kind.name]

        return decorate(*given) if given else decorate

    @overload
    def step(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
    @overload
    def step(self, fn: Callable[P, R], /) -> Step[P, R]: ...
    @overload
    def step(
        self,
        *,
        name: str | None = None,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        run_in: RunIn | None = None,
    ) -> StepDecorator: ...

    def step(
        self,
        *given: Callable[..., Any],
        name: str | None = None,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        run_in: RunIn | None = None,
    ) -> Any:
        """Makes a step of a function: `await charge(order)` in a workflow is `await ctx.step("charge", charge, order)`. Elsewhere
        it is a call of the function, a plain one in a thread."""
        from tenure.flow.decorating import Step  # noqa: PLC0415 - see above

        def decorate(function: Callable[..., Any]) -> Step[Any, Any]:
            return Step(function, name, retry, timeout, run_in)

        return decorate(*given) if given else decorate

    @checks_options("@app.cron")
    def cron(
        self,
        cron: str | None = None,
        /,
        *,
        every: Duration | None = None,
        timezone: str | None = None,
        name: str | None = None,
        input: Any = None,  # noqa: A002 - the term used everywhere
        queue: str | None = None,
        priority: int | str | None = None,
        overlap: Overlap = "skip",
        catch_up: CatchUp = "one",
        catch_up_limit: int = DEFAULT_LIMIT,
        jitter: Duration = 0,
        expires: Duration | None = None,
    ) -> CronDecorator:
        """Enqueues a job at the times of a cron expression, `@app.cron("0 9 * * *", timezone="Europe/Berlin")`, or at intervals,
        `@app.cron(every="10s")`. A plain function becomes a job; a job from `@app.job(...)` stays as it is.

        `input` is the job's input as JSON; `name` is the name of the schedule, by default that of the job. `overlap`: what
        happens to a planned time while an earlier job of the schedule is live. `catch_up`: what happens to times that passed
        while there was no leader. `expires`: after which time a job that was not started is canceled, by default that of the job.
        """

        def declare(given: Any) -> Any:
            job = given if isinstance(given, Job) else self.job(given)
            declared = schedule_of(
                job.kind,
                name=name,
                input=input,
                cron=cron,
                every=every,
                timezone=timezone,
                queue=queue,
                priority=priority,
                overlap=overlap,
                catch_up=catch_up,
                catch_up_limit=catch_up_limit,
                jitter=jitter,
                expires=expires,
            )
            self.kinds.declare(declared)
            return job

        decorator: CronDecorator = declare
        return decorator

    def duty(
        self,
        cron: str | None = None,
        /,
        *,
        every: Duration | None = None,
        timezone: str | None = None,
        jitter: Duration = 0,
        **options: Unpack[JobOptions],
    ) -> JobDecorator:
        """Runs a function periodically, once in the whole cluster: `@app.duty(every="1m")`. Never twice at a time, never retried;
        missed times are not made up for. It runs as a job, because leaders run no user code. `options` are those of
        `@app.job`."""

        def declare(function: Callable[..., Any]) -> Job[Any, Any, Any, Any]:
            job: Job[Any, Any, Any, Any] = self.job(**options)(function)
            declared = schedule_of(
                job.kind, cron=cron, every=every, timezone=timezone, overlap="skip", catch_up="none", jitter=jitter
            )
            self.kinds.declare(declared)
            return job

        options.setdefault("max_attempts", 1)
        check_option_names(options, [*JOB_OPTIONS, "every", "timezone", "jitter"], what="@app.duty")
        decorator: JobDecorator = declare
        return decorator

    @checks_options("limit()")
    def limit(
        self,
        *,
        queue: str,
        concurrency: LimitGiven | None = None,
        rate: RateGiven | None = None,
        fair_by: str | None = None,
    ) -> None:
        """Limits a queue over all workers: how many jobs run at a time, how many start in a time span, and which take turns."""
        rules = to_rules(concurrency, rate, fair_by, what=f"the limit of queue {queue!r}")
        if "\n" in check_name(queue, what="limit(): queue") or not rules:
            raise ConfigError(f"limit(queue={queue!r}): give a name without line breaks, and concurrency=, rate= or fair_by=")
        if self.kinds.queue_limits.get(queue, rules) != rules:
            raise ConfigError(f"queue {queue!r} is limited twice: give all its limits in one limit()")
        self.kinds.queue_limits[queue] = rules

    def middleware(self, layer: M) -> M:
        """Wraps every job of this app or collection in `async def layer(ctx, call_next)`; the first layer is the outermost."""
        self.kinds.middleware.append(layer)
        return layer


class Decorators(JobDecorators):
    """The part of `Tenure` with which code defines what the app runs. Nothing here needs a database."""

    events: Events

    def around_thread(self, hook: H) -> H:
        """Enters `hook(ctx)`, a context manager, around each job in the thread that runs a plain handler, also with
        `run_in="process"`. A generator function with one `yield` works as well. The first hook is the outermost. An exception
        in a hook fails the job.

        For resources of a thread, such as Django's connections. For coroutine handlers, use `around_coroutine`.
        """
        if inspect.isasyncgenfunction(hook) or inspect.iscoroutinefunction(hook):
            raise ConfigError(f"around_thread: {hook.__qualname__} is asynchronous: write it with `def`, or use around_coroutine")
        self.kinds.around_thread.append(contextmanager(hook) if inspect.isgeneratorfunction(hook) else hook)
        return hook

    def around_coroutine(self, hook: H) -> H:
        """Enters `hook(ctx)`, an asynchronous context manager, around each job in the task that runs a coroutine handler, also
        with `run_in="process"`. An asynchronous generator function with one `yield` works as well."""
        if inspect.isgeneratorfunction(hook) or inspect.iscoroutinefunction(hook):
            raise ConfigError(f"around_coroutine: {hook.__qualname__} must be `async def` with one `yield`, or use around_thread")
        self.kinds.around_coroutine.append(asynccontextmanager(hook) if inspect.isasyncgenfunction(hook) else hook)
        return hook

    def around_enqueue(self, hook: H) -> H:
        """Enters `hook(calls)`, a context manager, around each enqueue in this process. It gives the calls that are written: the
        same ones, or with more `meta`, `[call.with_meta(tenant=...) for call in calls]`. A generator function with one `yield`
        works as well. The first hook is the outermost. An exception in a hook is raised by the enqueue."""
        if inspect.isasyncgenfunction(hook) or inspect.iscoroutinefunction(hook):
            raise ConfigError(f"around_enqueue: {hook.__qualname__} is asynchronous: write it with `def`")
        self._runtime.around_enqueue.append(contextmanager(hook) if inspect.isgeneratorfunction(hook) else hook)
        return hook

    def on(self, *types: type[Event]) -> Callable[[S], S]:
        """Subscribes a function, plain or async, to events of this process: `@app.on(JobSettled)`."""
        from tenure.model.events import check_event_types  # noqa: PLC0415 - see above

        check_event_types(types)

        def subscribe(subscriber: S) -> S:
            self.events.subscribe(types, subscriber)
            return subscriber

        return subscribe
