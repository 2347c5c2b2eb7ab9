"""A kind of job: a name, a function, and the options its definition gave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal

from tenure.model.codec import InputCodec, OutputCodec
from tenure.model.errors import ConfigError, UnknownKind
from tenure.model.limits import LimitRules, kind_limit, queue_limit
from tenure.model.names import RESERVED, is_builtin
from tenure.model.retries import Retry
from tenure.model.routes import Route
from tenure.model.schedules import Schedule
from tenure.model.signatures import Signature

RunIn = Literal["loop", "thread", "process"]

KeyScope = Literal["live", "forever"] | float
"""How long a key is reserved for its job: until the job is over, forever, or for a number of seconds (and until it is over)."""

KeyMaker = Callable[[dict[str, Any]], str | None]
"""From the arguments by name to the idempotency key; None: this call has none."""

Middleware = Callable[..., Awaitable[Any]]
"""`async def middleware(ctx, call_next)`: awaits `call_next()` for the result, or decides otherwise."""

AroundThread = Callable[[Any], AbstractContextManager[Any]]
"""`hook(ctx)` gives a context manager that is entered in the thread in which a plain handler runs."""

AroundCoroutine = Callable[[Any], AbstractAsyncContextManager[Any]]
"""The same for coroutine handlers, in their task."""


def _no_route(_: str) -> Route | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    name: str
    fn: Callable[..., Any]
    signature: Signature
    input: InputCodec
    output: OutputCodec
    own_queue: str
    """What the definition says, as `own_priority`. Settings may route the kind elsewhere."""
    own_priority: int
    timeout: timedelta | None
    capability: str | None
    lease: timedelta | None
    run_in: RunIn
    expires: timedelta | None = None
    """How long after its enqueue a job that was not started is canceled."""
    own_retry: Retry | int | None = None
    """What the definition says: a whole policy, or only how many attempts. None: the app's default."""
    default_retry: Callable[[], Retry] = Retry
    """The app's default. Asked for when it is needed: settings are not read while code is imported."""
    route: Callable[[str], Route | None] = _no_route
    """Where the app's settings send jobs of this kind. Asked for when it is needed, as the retry."""
    key: KeyMaker | None = None
    key_for: KeyScope = "forever"
    context: Callable[[Any, Any], Any] | None = None
    """Makes the handler's context from its run and the services of its process; None: a plain `Context`."""
    version: str | None = None
    """Of a workflow's code. Its runs are claimed only by workers with this version."""
    atomic: bool = False
    """The handler runs inside `ctx.transaction()`."""
    session: Callable[[], object] | None = None
    """What `ctx.transaction()` is on without an argument, as the app's framework has it. None: a connection of Tenure's own."""
    retention: timedelta | None = None
    """For how long its finished jobs are kept; None: as all others."""
    middleware: tuple[Middleware, ...] = ()
    limits: LimitRules = field(default_factory=LimitRules)
    """Its rules; empty when it is not limited."""
    builtin: bool = False
    """Part of Tenure: every worker runs it, without the app's middleware and hooks, and no list of the app's kinds has it."""

    @property
    def is_workflow(self) -> bool:
        return self.context is not None

    @property
    def queue(self) -> str:
        route = self.route(self.name)
        return self.own_queue if route is None or route.queue is None else route.queue

    @property
    def priority(self) -> int:
        route = self.route(self.name)
        return self.own_priority if route is None or route.priority is None else route.priority

    @property
    def retry(self) -> Retry:
        if isinstance(self.own_retry, Retry):
            return self.own_retry
        default = self.default_retry()
        return default if self.own_retry is None else default.with_attempts(self.own_retry)


class Registry(Mapping[str, Kind]):
    """The kinds an app defines, by name. Built-in ones can be looked up, but are not listed."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self.middleware: list[Middleware] = []
        """For every kind, outermost first."""
        self.around_thread: list[AroundThread] = []
        """Around every plain handler, where it runs; outermost first."""
        self.around_coroutine: list[AroundCoroutine] = []
        """Around every coroutine handler, where it runs; outermost first."""
        self.overrides: dict[Callable[..., Any], Callable[..., Any]] = {}
        """Functions that tests put in the place of those that provide values."""
        self.home: str | None = None
        """The module that holds the app: a job's own process imports it first."""
        self.more_queues: set[str] = set()
        """Queues that workers serve besides those of the kinds, because calls may name them."""
        self._schedules: dict[str, Schedule] = {}
        self.queue_limits: dict[str, LimitRules] = {}
        """By queue: the rules that the code declares for it."""

    def declare(self, schedule: Schedule) -> None:
        known = self._schedules.get(schedule.name)
        if known is not None and known != schedule:
            raise ConfigError(f"schedule {schedule.name!r} is declared twice: give one of them another name=")
        self._schedules[schedule.name] = schedule

    @property
    def schedules(self) -> dict[str, Schedule]:
        """What the code declares, by name. Their jobs have as many attempts as others of their kind, and the same route."""
        return {
            name: _routed(declared, self[declared.kind]) if declared.kind in self else declared
            for name, declared in self._schedules.items()
        }

    @property
    def declared(self) -> list[Schedule]:
        """The schedules as the code declares them."""
        return list(self._schedules.values())

    @property
    def limits(self) -> dict[str, LimitRules]:
        """All that the code declares, by the names of the limits."""
        of_kinds = {kind_limit(name): kind.limits for name, kind in self._kinds.items() if kind.limits}
        return of_kinds | {queue_limit(queue): rules for queue, rules in self.queue_limits.items()}

    @property
    def served(self) -> list[str]:
        """All that a worker runs, also the built-in ones."""
        return list(self._kinds)

    def add(self, kind: Kind) -> None:
        if is_builtin(kind.name) != kind.builtin:
            raise ConfigError(f"job {kind.name!r}: names that begin with {RESERVED!r} are reserved: give it another name=")
        known = self._kinds.get(kind.name)
        if known is not None and known.fn is not kind.fn:
            raise ConfigError(
                f"job {kind.name!r} is defined twice, by {_where(known.fn)} and {_where(kind.fn)}: give one of them another name="
            )
        self._kinds[kind.name] = kind

    def __getitem__(self, name: str) -> Kind:
        try:
            return self._kinds[name]
        except KeyError:
            raise UnknownKind(name, self) from None

    def __contains__(self, name: object) -> bool:
        return name in self._kinds and not self._kinds[name].builtin

    def __iter__(self) -> Iterator[str]:
        return (name for name, kind in self._kinds.items() if not kind.builtin)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _routed(schedule: Schedule, kind: Kind) -> Schedule:
    return replace(
        schedule,
        max_attempts=kind.retry.max_attempts,
        queue=kind.queue if schedule.queue == kind.own_queue else schedule.queue,
        priority=kind.priority if schedule.priority == kind.own_priority else schedule.priority,
    )


def _where(fn: Callable[..., Any]) -> str:
    return f"{fn.__module__}.{fn.__qualname__}"
