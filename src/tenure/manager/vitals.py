"""Whether this supervisor still does what it is for, told to those who would start it anew if it did not.

It is well while it renews the leases of its processes. An outage of PostgreSQL is survived without being started anew, so
it takes a long one to be unwell.
"""

from __future__ import annotations

import json
import logging
import os
import time
from contextlib import suppress
from pathlib import Path

log = logging.getLogger("tenure")

UNWELL_AFTER = 120.0
"""Seconds without a renewal. Longer than a failover takes; a new process could do no more about it."""

TOUCH_EVERY = 2.0


class Vitals:
    def __init__(self, file: str | None = None) -> None:
        self._file = Path(file) if file else None
        self._renewed = time.monotonic()
        self._touched = 0.0

    @property
    def well(self) -> bool:
        return time.monotonic() - self._renewed < UNWELL_AFTER

    def renewed(self, **told: object) -> None:
        self._renewed = now = time.monotonic()
        if self._file is not None and now - self._touched >= TOUCH_EVERY:
            self._touched = now
            self._write(self._file, told)

    def gone(self) -> None:
        """Whoever looks shall not take us for alive."""
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink()

    def _write(self, file: Path, told: dict[str, object]) -> None:
        """In one step: whoever looks finds the old file or the new one."""
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            beside.write_text(json.dumps({"pid": os.getpid(), **told}) + "\n", "utf-8")
            beside.replace(file)
        except OSError as error:
            log.warning("the health file cannot be written, and probes will fail: %s", error)


def health_of(file: Path, longest: float) -> tuple[bool, str]:
    """Whether the supervisor that keeps this file is well, and what there is to say about it."""
    try:
        age = time.time() - file.stat().st_mtime
    except OSError as error:
        return False, f"{file} cannot be read ({error.strerror}): no supervisor is up that keeps it"
    if age > longest:
        return False, f"{file} was last touched {age:.0f} s ago: the leases are not renewed"
    return True, f"{file} was last touched {max(0.0, age):.0f} s ago"
