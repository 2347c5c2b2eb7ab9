"""The files into which the handlers of a campaign write: one of each sort per process, in the order of time."""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path
from typing import Any

from tenure.chaos.ledger import as_line
from tenure.chaos.workers import CLOCK, FOLDER


def campaign_time() -> float:
    """On the campaign's clock: the clock of this process may have been moved."""
    return time.monotonic() + float(os.environ.get(CLOCK, "0"))


def append_line(sort: str, values: tuple[Any, ...]) -> None:
    """At once and without a buffer, so that nothing is lost when this process is killed."""
    os.write(_file(os.getpid(), sort), as_line(values).encode())


@cache
def _file(pid: int, sort: str) -> int:
    name = f"{sort}-{pid}-{time.monotonic_ns()}.jsonl"
    return os.open(Path(os.environ[FOLDER]) / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
