"""A script that defines jobs with `run_in="process"` is run again in each process of such jobs, to find the jobs.

There it must only define jobs: a script that also starts its worker, or enqueues, would do so in each of these processes, nested.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tenure.model.errors import ConfigError

_scripts: list[str] = []
"""The script that is being run again. Not a context variable, because it applies to all threads."""


@contextmanager
def rerunning(script: str) -> Iterator[None]:
    _scripts.append(script)
    try:
        yield
    finally:
        _scripts.pop()


def refuse_in_rerun() -> None:
    if _scripts:
        raise ConfigError(
            f'{_scripts[-1]} starts a worker or uses the database when it is loaded, but a job with run_in="process" loads it '
            'again in a separate process: put the code that starts the program below `if __name__ == "__main__":`'
        )
