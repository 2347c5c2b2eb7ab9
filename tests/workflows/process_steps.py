"""Functions for steps in other processes, and an app as such a process imports it."""

from __future__ import annotations

import os
import signal
import time
from datetime import date
from pathlib import Path

from tenure import Tenure

app = Tenure()


def where(_n: int) -> int:
    return os.getpid()


async def next_day(day: date) -> date:
    return date.fromordinal(day.toordinal() + 1)


def fail(text: str) -> None:
    raise ValueError(text)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(folder: str) -> str:
    mark = Path(folder, "died")
    if not mark.exists():
        mark.touch()
        die()
    return "survived"


def hang(folder: str) -> None:
    Path(folder, "pid").write_text(str(os.getpid()))
    time.sleep(3600)


@app.step(run_in="process")
def decorated(n: int) -> tuple[int, int]:
    return n, os.getpid()
