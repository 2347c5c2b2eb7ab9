"""Other functions in the place of those that provide values to handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tenure.app import Tenure


@contextmanager
def override(app: Tenure, functions: Mapping[Callable[..., Any], Callable[..., Any]]) -> Iterator[None]:
    """Provides handlers with what the substitutes return or yield, instead of what the given functions do.

    `with override(app, {get_session: lambda: fake}): ...` A substitute takes no parameters. Handlers with `run_in="process"`
    are not affected: they run in other processes.
    """
    current = app.kinds.overrides
    before = dict(current)
    current.update(functions)
    try:
        yield
    finally:
        current.clear()
        current.update(before)
