"""Shows what is being measured: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Steps:
    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._began = time.perf_counter()
        self._bar = _bar() if sys.stderr.isatty() else None

    @contextmanager
    def shown(self) -> Iterator[Steps]:
        if self._bar is None:
            yield self
            return
        with self._bar:
            self._task = self._bar.add_task("", total=self._total)
            yield self

    def begin(self, name: str) -> None:
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, description=name, completed=self._done - 1)
            return
        took = time.perf_counter() - self._began
        print(f"[{self._done:>2}/{self._total}] {took:5.0f} s  {name}", file=sys.stderr, flush=True)


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
