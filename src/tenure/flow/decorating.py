"""What makes workflows and steps of functions."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, Unpack, overload

from tenure.client.job import Job
from tenure.flow.context import WorkflowContext, current_workflow, workflow_context
from tenure.flow.execution import entry_of
from tenure.flow.step_functions import StepCall, inside_step, runs_in_process, step_function
from tenure.flow.step_runner import step_options
from tenure.model.definitions import JobOptions, define
from tenure.model.durations import Duration
from tenure.model.errors import ConfigError
from tenure.model.kinds import Kind, RunIn
from tenure.model.names import check_name
from tenure.model.retries import Retry

P = ParamSpec("P")
R = TypeVar("R")

NOT_FOR_WORKFLOWS = ("run_in", "atomic", "lease")
"""Options of jobs that belong to the steps of a workflow."""


class WorkflowDecorator(Protocol):
    """Keeps the function's types, as that of a job does."""

    @overload
    def __call__(
        self, fn: Callable[Concatenate[WorkflowContext, P], Coroutine[Any, Any, R]], /
    ) -> Job[Concatenate[WorkflowContext, P], P, Coroutine[Any, Any, R], R]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, P, Coroutine[Any, Any, R], R]: ...


def workflow_kind(
    fn: Callable[..., Any], default_retry: Callable[[], Retry], version: str | None, **options: Unpack[JobOptions]
) -> Kind:
    """The kind of job that a workflow is: its function runs on the loop, and its context records steps."""
    for name in NOT_FOR_WORKFLOWS:
        if name in options:
            raise ConfigError(
                f"@app.workflow has no option {name!r}: it is an option of jobs; a workflow calls them with ctx.call()"
            )
    if not inspect.iscoroutinefunction(fn):
        raise ConfigError(f"workflow {getattr(fn, '__qualname__', fn)} is not a coroutine function: write `async def`")
    kind = define(fn, context_type=WorkflowContext, default_retry=default_retry, **options)
    if version is not None:
        if kind.capability is not None:
            raise ConfigError(f"workflow {kind.name!r} has both version= and capability=: give one of them")
        kind = replace(kind, capability=check_name(f"{kind.name}@{version}", what=f"workflow {kind.name!r}: version"))
    return replace(kind, fn=entry_of(fn), context=workflow_context, version=version)


class Step(Generic[P, R]):
    """What `@app.step` makes of a function: awaited in a workflow, it is a step; elsewhere it is a call."""

    def __init__(
        self,
        fn: Callable[P, Any],
        name: str | None,
        retry: Retry | int | None,
        timeout: Duration | None,
        run_in: RunIn | None = None,
    ) -> None:
        functools.update_wrapper(self, fn)
        self.name = check_name(fn.__name__ if name is None else name, what="the name of a step")
        self._function = step_function(fn, self.name)
        in_process = runs_in_process(run_in, self._function, self.name)
        self._options = step_options(retry, timeout, in_process=in_process)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        workflow = current_workflow()
        if workflow is None or inside_step.get():
            return self._plain(args, kwargs)
        return workflow._step(self.name, self._function, StepCall(args, kwargs), self._options)  # noqa: SLF001

    async def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        fn = self._function.fn
        returned: R = await fn(*args, **kwargs) if self._function.is_async else await asyncio.to_thread(fn, *args, **kwargs)
        return returned


class StepDecorator(Protocol):
    @overload
    def __call__(self, fn: Callable[P, Awaitable[R]], /) -> Step[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Step[P, R]: ...
