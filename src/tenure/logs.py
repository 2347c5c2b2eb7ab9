"""Logging of the processes that Tenure itself starts. A library that is imported leaves logging to its user.

TENURE_LOG is the level (INFO), TENURE_LOG_FORMAT is `text` or `json`. Every record of a handler, also through plain
`logging`, carries the job it belongs to.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any

from tenure.model.current import current_run
from tenure.model.errors import ConfigError

FORMATS = ("text", "json")


def set_up_logging(level: str | None = None, form: str | None = None) -> None:
    form = form or os.environ.get("TENURE_LOG_FORMAT", "text")
    if form not in FORMATS:
        raise ConfigError(f"TENURE_LOG_FORMAT is {form!r}: use text or json")
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines() if form == "json" else Lines())
        root.addHandler(handler)
    chosen = (level or os.environ.get("TENURE_LOG", "INFO")).upper()
    if chosen not in logging.getLevelNamesMapping():
        raise ConfigError(f"TENURE_LOG is {chosen!r}: use DEBUG, INFO, WARNING or ERROR")
    root.setLevel(chosen)


def job_fields() -> dict[str, Any]:
    """Whose run the current code belongs to; nothing outside of one."""
    run = current_run.get()
    if run is None:
        return {}
    return {"job_id": run.job_id, "kind": run.kind_name, "queue": run.queue, "attempt": run.attempt, "worker_id": run.worker_id}


class Lines(logging.Formatter):
    """For people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s[%(process)d] %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        line = super().formatMessage(record)
        fields = {**getattr(record, "fields", {})}
        if job := job_fields():
            fields |= {"job": f"{job['kind']} {job['job_id']}"}
        return line + "".join(f"  {name}={value!s}" for name, value in fields.items())


class JsonLines(logging.Formatter):
    """For programs: one object a line."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
            **job_fields(),
        }
        if fields := getattr(record, "fields", None):
            told["fields"] = fields
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)
