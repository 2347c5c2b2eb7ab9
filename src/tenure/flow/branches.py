"""Names of steps that are the same in every run, also if a workflow starts tasks of its own.

The steps of one task follow each other, so their order is the same in every run. Steps of different tasks overtake each other, so
each task has names of its own: the first task that a workflow starts names its steps `1/name`, the second one `2/name`. Tasks of
`ctx.gather()` are numbered by their place there, others in the order of their first steps.

A name of the user's may look like one of these. No task has the number 0, so `0/` says that what follows is the name; and a
name that ends like the second use of another one has the number of its use from the first on.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

_PATH = re.compile(r"(?:[1-9][0-9]*/)*")
_LIKE_A_TASK = re.compile(r"[0-9]+/")
_LIKE_A_USE = re.compile(r"#[0-9]+\Z")


def path_of(key: str) -> str:
    """The path of the task that a step belongs to."""
    found = _PATH.match(key)
    return found[0] if found else ""


class Branch:
    """A task of a workflow. Knows how often it has used each name."""

    __slots__ = ("_branches", "_task", "_uses", "path", "tasks")

    def __init__(self, path: str, task: asyncio.Task[Any] | None, tasks: set[asyncio.Task[Any]]) -> None:
        self.path = path
        self.tasks = tasks
        """All tasks of the workflow."""
        self._task = task
        self._uses: dict[str, int] = {}
        self._branches = 0

    def key(self, name: str) -> str:
        """Unique in the run: the second use of a name gets `#2`."""
        uses = self._uses[name] = self._uses.get(name, 0) + 1
        path = f"{self.path}0/" if _LIKE_A_TASK.match(name) else self.path
        return f"{path}{name}" if uses == 1 and not _LIKE_A_USE.search(name) else f"{path}{name}#{uses}"

    def here(self) -> Branch:
        """The branch of the current task: this one, or a new one for a task that inherited it."""
        task = asyncio.current_task()
        if task is self._task:
            return self
        return self.next().taken_by(task)

    def next(self) -> Branch:
        """For the next task that this one starts."""
        self._branches += 1
        return Branch(f"{self.path}{self._branches}/", None, self.tasks)

    def taken_by(self, task: asyncio.Task[Any] | None) -> Branch:
        self._task = task
        if task is not None:
            self.tasks.add(task)
        return self

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs it as this branch, in a task of its own."""
        _current.set(self.taken_by(asyncio.current_task()))
        return await work


_current: ContextVar[Branch] = ContextVar("workflow_branch")


def begin_branches() -> set[asyncio.Task[Any]]:
    """The current task is the first one of its workflow. Returns the others, as they become known."""
    tasks: set[asyncio.Task[Any]] = set()
    _current.set(Branch("", asyncio.current_task(), tasks))
    return tasks


def join_tasks() -> None:
    """The current task ends with its workflow. It may have the names of another task, in which its coroutine was made:
    `asyncio.create_task(ctx.wait_for("paid"))`."""
    task = asyncio.current_task()
    if task is not None:
        _current.get().tasks.add(task)


def current_branch() -> Branch:
    """For steps that are called now."""
    inherited = _current.get()
    branch = inherited.here()
    if branch is not inherited:
        _current.set(branch)
    return branch
