"""Whether this supervisor is alive and ready, for probes and systemd.

Alive: its event loop runs. That does not depend on PostgreSQL: the supervisor survives an outage without a restart, and a
restart would discard finished results that wait to be written. Ready: it has renewed the leases of its processes recently.

There are two files, so that a probe needs only `find`: FILE is touched while the supervisor is alive, FILE.ready at each
renewal. Both are removed at shutdown.
"""

from __future__ import annotations

import json
import logging
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("tenure")

TOUCH_EVERY = 2.0
DEAD_AFTER = 60.0
"""Seconds. A probe regards the supervisor as dead if FILE is older."""

UNREADY_AFTER = 30.0
"""Seconds without a renewal after which it is not ready: two default leases, or one lease if that is longer."""


def ready_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.ready")


class HealthChecks:
    def __init__(self, file: str | None = None) -> None:
        self._file = Path(file) if file else None
        self._touched = self._renewed = 0.0

    def alive(self, **facts: object) -> None:
        """The event loop runs."""
        if self._file is not None and time.monotonic() - self._touched >= TOUCH_EVERY / 2:
            if not self._touched:
                ready_file(self._file).unlink(missing_ok=True)  # of a supervisor that was killed: a volume outlives its container
            self._touched = time.monotonic()
            self._write(self._file, facts)

    def renewed(self, **facts: object) -> None:
        """The leases were renewed."""
        if self._file is not None and time.monotonic() - self._renewed >= TOUCH_EVERY:
            self._renewed = time.monotonic()
            self._write(ready_file(self._file), facts)

    def remove(self) -> None:
        if self._file is not None:
            for file in (self._file, ready_file(self._file)):
                with suppress(OSError):
                    file.unlink()

    def _write(self, file: Path, facts: dict[str, object]) -> None:
        """Atomic: a reader finds the old file or the new one."""
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            beside.write_text(json.dumps({"pid": os.getpid(), **facts}) + "\n", "utf-8")
            beside.replace(file)
        except OSError as error:
            log.warning("health file cannot be written; probes will fail", extra={"file": str(file), "error": str(error)})


@dataclass(frozen=True, slots=True)
class ProbeResult:
    good: bool
    message: str
    age: float | None
    """Seconds since the file was touched."""


def liveness(file: Path, longest: float = DEAD_AFTER) -> ProbeResult:
    """Whether the supervisor that touches this file is alive."""
    return _health(file, longest, "the supervisor is not responding")


def readiness(file: Path, longest: float | None = None) -> ProbeResult:
    """Whether it has renewed its leases within `longest`, by default 30 s or the lease if that is longer."""
    touched = ready_file(file)
    return _health(touched, max(UNREADY_AFTER, _lease(touched)) if longest is None else longest, "the leases are not renewed")


def _lease(file: Path) -> float:
    with suppress(OSError, ValueError, TypeError):
        return float(json.loads(file.read_text("utf-8")).get("lease", 0.0))
    return 0.0


def _health(file: Path, longest: float, problem: str) -> ProbeResult:
    try:
        age = max(0.0, time.time() - file.stat().st_mtime)
    except OSError as error:
        return ProbeResult(
            good=False, message=f"{file} cannot be read ({error.strerror}): no supervisor is up that writes it", age=None
        )
    if age > longest:
        return ProbeResult(good=False, message=f"{file} was last touched {age:.0f} s ago: {problem}", age=age)
    return ProbeResult(good=True, message=f"{file} was last touched {age:.0f} s ago", age=age)
