"""From a function and the options of `@app.job` to a kind of job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

from tenure.model.codec import InputCodec, OutputCodec
from tenure.model.durations import Duration, to_timedelta
from tenure.model.errors import ConfigError
from tenure.model.keys import KeyGiven, key_maker, key_scope
from tenure.model.kinds import Kind, Middleware, RunIn
from tenure.model.limits import LimitGiven, RateGiven, of_kind, to_rules
from tenure.model.names import check_name
from tenure.model.options import check_option_names, flag, one_of
from tenure.model.outcomes import OUTCOMES
from tenure.model.priorities import to_priority
from tenure.model.retries import Retry
from tenure.model.routes import Route
from tenure.model.signatures import Signature


class JobOptions(TypedDict, total=False):
    """The options of `@app.job`."""

    name: str | None
    """Default: the name of the function."""
    queue: str
    priority: int | str
    retry: Retry | int | None
    """Default: the app's. A number changes only how many attempts there are."""
    max_attempts: int | None
    timeout: Duration | None
    """Default: 1 h. None: no limit."""
    expires: Duration | None
    """A job that was not started by then is canceled. Default: it waits for as long as it has to."""
    capability: str | None
    lease: Duration | None
    run_in: RunIn | None
    """Default: "loop" for coroutine functions, "thread" for others."""
    key: KeyGiven | None
    key_for: Duration
    """Default: "forever"."""
    atomic: bool
    retention: Duration | None
    middleware: Sequence[Middleware]
    concurrency: LimitGiven | None
    rate: RateGiven | None
    fair_by: str | None


JOB_OPTIONS = tuple(JobOptions.__annotations__)


def define(
    fn: Callable[..., Any],
    /,
    *,
    context_type: type,
    default_retry: Callable[[], Retry],
    route: Callable[[str], Route | None] = lambda _: None,
    **options: Unpack[JobOptions],
) -> Kind:
    """Raises `ConfigError` if the function or an option is not valid."""
    check_option_names(options, JOB_OPTIONS, what="@app.job")
    signature = Signature.of(fn, context_type=context_type)
    given_name = options.get("name")
    kind = check_name(fn.__name__ if given_name is None else given_name, what="the name of a job")
    what = f"job {kind!r}"
    rules = to_rules(options.get("concurrency"), options.get("rate"), options.get("fair_by"), what=what)
    if rules and "\n" in kind:
        raise ConfigError(f"{what}: a limited job needs a name without line breaks")
    codec = InputCodec(signature, kind=kind)
    timeout, lease, retention = options.get("timeout", "1h"), options.get("lease"), options.get("retention")
    capability, key, expires = options.get("capability"), options.get("key"), options.get("expires")
    return Kind(
        name=kind,
        fn=fn,
        signature=signature,
        input=codec,
        output=OutputCodec.for_annotation(signature.returns, kind=kind, outcomes=OUTCOMES),
        own_queue=check_name(options.get("queue", "default"), what=f"{what}: queue"),
        own_priority=to_priority(options.get("priority", "normal")),
        route=route,
        own_retry=_own_retry(options.get("retry"), options.get("max_attempts"), what),
        default_retry=default_retry,
        timeout=None if timeout is None else to_timedelta(timeout, what="timeout"),
        capability=None if capability is None else check_name(capability, what=f"{what}: capability"),
        lease=None if lease is None else to_timedelta(lease, what="lease"),
        expires=None if expires is None else to_timedelta(expires, what="expires"),
        run_in=_executor(options.get("run_in"), fn, signature, what),
        key=None if key is None else key_maker(key, kind=kind, signature=signature, encode=codec.encode_values),
        key_for=key_scope(options.get("key_for", "forever")),
        atomic=flag(options.get("atomic", False), what=f"{what}: atomic"),
        retention=None if retention is None else to_timedelta(retention, what="retention"),
        middleware=_layers(options.get("middleware", ()), what),
        limits=of_kind(rules, kind=kind, signature=signature, codec=codec),
    )


def _own_retry(retry: Retry | int | None, max_attempts: int | None, what: str) -> Retry | int | None:
    """A number is the number of attempts; the rest is the app's default."""
    if retry is not None and max_attempts is not None:
        raise ConfigError(f"{what}: give max_attempts inside retry=Retry(...), or alone, not both")
    given = max_attempts if retry is None else retry
    if given is None or isinstance(given, Retry):
        return given
    checked = Retry.from_value(given)
    return checked.max_attempts if isinstance(given, int) else checked


def _executor(given: RunIn | None, fn: Callable[..., Any], signature: Signature, what: str) -> RunIn:
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
