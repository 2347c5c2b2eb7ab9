"""What `@app.job(...)` and `@app.cron(...)` make of a function: its own types are kept."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import CodeType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from tenure.client.job import Job
from tenure.worker.context import Context

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
