"""Logging of the processes that Tenure starts. As a library, Tenure does not configure logging.

TENURE_LOG is the level (default INFO), TENURE_LOG_FORMAT is `text` or `json`. Every record that a handler logs, with any
logger, contains the job it belongs to.

A log call of Tenure is one event: a short fixed message and fields, as in `log.info("worker process ready",
extra={"child_pid": 7})`. In text the fields follow the message as `child_pid=7`; in JSON they are keys of the object.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from textwrap import indent
from typing import Any

from tenure.model.current import current_run
from tenure.model.errors import ConfigError

FORMATS = ("text", "json")
SPELLED_OUT = "spelled_out"
"""Given in `extra=` if the message already contains the fields as words, for applications with their own log format. The text
format does not repeat them."""
STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "fields", SPELLED_OUT}
"""Attributes of every record. Others were given as `extra=`."""


class _Worker:
    """The worker name of this process, if it is a worker."""

    name: str | None = None
    given = False
    """The operator has set the name, so the text format shows it."""


def name_worker(name: str, *, given: bool) -> None:
    """From now on every record of this process contains the name."""
    _Worker.name, _Worker.given = name, given


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
    """Fields of the job whose handler runs the current code; empty outside a handler."""
    run = current_run.get()
    if run is None:
        return {}
    return {"job_id": run.job_id, "kind": run.kind_name, "queue": run.queue, "attempt": run.attempt, "worker_id": run.worker_id}


def extra_fields(record: logging.LogRecord) -> dict[str, Any]:
    """What was given as `extra=`, for Tenure's records only: other libraries put objects there for their own handlers."""
    if record.name != "tenure" and not record.name.startswith("tenure."):
        return {}
    return {name: value for name, value in vars(record).items() if name not in STANDARD}


class Lines(logging.Formatter):
    """The text format."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s[%(process)d] %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        line = super().formatMessage(record)
        if getattr(record, SPELLED_OUT, False):  # the message does not contain the worker
            return f"{line}  worker={_word(_Worker.name)}" if _Worker.given else line
        fields = {**extra_fields(record), **getattr(record, "fields", {})}
        blocks = {name: str(value) for name, value in fields.items() if isinstance(value, str) and "\n" in value.strip()}
        words = [f"{name}={_word(value)}" for name, value in fields.items() if name not in blocks]
        if (job := job_fields()) and "job_id" not in fields:
            words.append(f"job={job['kind']} {job['job_id']}")
        if _Worker.given and "worker" not in fields:
            words.append(f"worker={_word(_Worker.name)}")
        return "  ".join([line, *words]) + "".join(
            f"\n    {name}:\n{indent(text.strip(), ' ' * 8)}" for name, text in blocks.items()
        )


RESERVED = ("at", "level", "logger", "message", "pid", "fields", "traceback")


class JsonLines(logging.Formatter):
    """The JSON format: one object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
            **({"worker": _Worker.name} if _Worker.name else {}),
            **job_fields(),
        }
        for name, value in extra_fields(record).items():
            line[name if name not in RESERVED else f"{name}_"] = value
        if fields := getattr(record, "fields", None):
            line["fields"] = fields
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _word(value: object) -> str:
    """On one line, and quoted if its end would not be clear otherwise."""
    if isinstance(value, list | tuple | set | frozenset):
        value = ",".join(map(str, value))
    text = str(value)
    return text if text and text.isprintable() and not set(text) & {" ", '"', "="} else json.dumps(text, ensure_ascii=False)
