"""What `@app.job(...)` and `@app.cron(...)` make of a function: its own types are kept."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from types import CodeType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from tenure.client.job import Job
from tenure.model.codec import InputCodec, OutputCodec
from tenure.model.durations import Duration, to_timedelta
from tenure.model.errors import ConfigError
from tenure.model.keys import KeyGiven, key_maker, key_scope
from tenure.model.kinds import Kind, Middleware, RunIn
from tenure.model.limits import LimitGiven, RateGiven, of_kind, to_rules
from tenure.model.names import check_name
from tenure.model.options import checks_options, flag, one_of, option_names
from tenure.model.outcomes import Cancel, Fail, Snooze
from tenure.model.priorities import to_priority
from tenure.model.retries import Retry
from tenure.model.signatures import Signature
from tenure.worker.run.context import Context

Q = ParamSpec("Q")
P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class JobDecorator(Protocol):
    """Keeps the function's own types: what a direct call takes and gives, what is enqueued, what it results in."""

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
    """What `def` makes, told from other things that can be called, such as jobs."""

    __code__: CodeType

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...


class CronDecorator(Protocol):
    """The same, and a job stays the job it is."""

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


@checks_options("@app.job")
def define(
    fn: Callable[..., Any],
    /,
    *,
    default_retry: Callable[[], Retry],
    name: str | None = None,
    queue: str = "default",
    priority: int | str = "normal",
    retry: Retry | int | None = None,
    max_attempts: int | None = None,
    timeout: Duration | None = "1h",
    capability: str | None = None,
    lease: Duration | None = None,
    run_in: RunIn | None = None,
    key: KeyGiven | None = None,
    key_for: Duration = "forever",
    atomic: bool = False,
    retention: Duration | None = None,
    middleware: Sequence[Middleware] = (),
    concurrency: LimitGiven | None = None,
    rate: RateGiven | None = None,
    fair_by: str | None = None,
) -> Kind:
    """The kind that a function and the options of its decorator make."""
    signature = Signature.of(fn, context_type=Context)
    kind = check_name(fn.__name__ if name is None else name, what="the name of a job")
    what = f"job {kind!r}"
    if retry is not None and max_attempts is not None:
        raise ConfigError(f"{what}: give max_attempts inside retry=Retry(...), or alone, not both")
    rules = to_rules(concurrency, rate, fair_by, what=what)
    if rules and "\n" in kind:
        raise ConfigError(f"{what}: a limited job needs a name without line breaks")
    codec = InputCodec(signature, kind=kind)
    return Kind(
        name=kind,
        fn=fn,
        signature=signature,
        input=codec,
        output=OutputCodec.for_annotation(signature.returns, kind=kind, outcomes=(Snooze, Fail, Cancel)),
        queue=check_name(queue, what=f"{what}: queue"),
        priority=to_priority(priority),
        own_retry=_own_retry(max_attempts if retry is None else retry),
        default_retry=default_retry,
        timeout=None if timeout is None else to_timedelta(timeout, what="timeout"),
        capability=None if capability is None else check_name(capability, what=f"{what}: capability"),
        lease=None if lease is None else to_timedelta(lease, what="lease"),
        run_in=_where_it_runs(run_in, fn, signature, what),
        key=None if key is None else key_maker(key, kind=kind, signature=signature, encode=codec.encode_values),
        key_for=key_scope(key_for),
        atomic=flag(atomic, what=f"{what}: atomic"),
        retention=None if retention is None else to_timedelta(retention, what="retention"),
        middleware=_layers(middleware, what),
        limits=of_kind(rules, kind=kind, signature=signature, codec=codec),
    )


JOB_OPTIONS = [option for option in option_names(define) if option != "default_retry"]
"""The names that `@app.job` takes."""


def _own_retry(given: Retry | int | None) -> Retry | int | None:
    """A number says how many attempts; the rest is the app's default."""
    if given is None or isinstance(given, Retry):
        return given
    checked = Retry.from_value(given)
    return checked.max_attempts if isinstance(given, int) else checked


def _where_it_runs(given: RunIn | None, fn: Callable[..., Any], signature: Signature, what: str) -> RunIn:
    if given is None:
        return "loop" if signature.is_async else "thread"
    one_of(given, RunIn, what=f"{what}: run_in")
    if given == "loop" and not signature.is_async:
        raise ConfigError(f"{what} is a plain function and would block the event loop: make it async or leave run_in out")
    if given == "thread" and signature.is_async:
        raise ConfigError(
            f"{what} is a coroutine function and runs on the event loop: make it a plain function to run it in a thread"
        )
    if given == "process" and "<locals>" in fn.__qualname__:
        raise ConfigError(f"{what} is defined inside a function, where no other process can find it: move it to its module")
    return given


def _layers(given: Any, what: str) -> tuple[Middleware, ...]:
    if callable(given) or not isinstance(given, Sequence) or not all(map(callable, given)):
        raise ConfigError(f"{what}: middleware is {given!r}: give a list of functions, middleware=[first, second]")
    return tuple(given)
