"""Logging of the processes that Tenure itself starts. A library that is imported leaves logging to its user.

TENURE_LOG is the level (INFO), TENURE_LOG_FORMAT is `text` or `json`. Every record of a handler, also through plain
`logging`, carries the job it belongs to.

A log call of Tenure's is one event: a short fixed message, and its facts as fields: `log.info("worker process ready",
extra={"child_pid": 7})`. As text they follow the message as `child_pid=7`; as JSON they are keys beside it.
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
"""Given as `extra=` with a message that has its facts in words, for applications with a format of their own: lines for people do
not repeat them."""
STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "fields", SPELLED_OUT}
"""Attributes of every record: what is beyond them was given as `extra=`."""


class _Worker:
    """The name of the worker that this process is, if it is one."""

    name: str | None = None
    given = False
    """It was chosen by the operator, so it is worth a place in lines for people."""


def name_worker(name: str, *, given: bool) -> None:
    """From here on every record of this process carries the name."""
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
    """Whose run the current code belongs to; nothing outside of one."""
    run = current_run.get()
    if run is None:
        return {}
    return {"job_id": run.job_id, "kind": run.kind_name, "queue": run.queue, "attempt": run.attempt, "worker_id": run.worker_id}


def extra_fields(record: logging.LogRecord) -> dict[str, Any]:
    """What was given as `extra=`. Of our own records only: other libraries put objects there for handlers of theirs."""
    if record.name != "tenure" and not record.name.startswith("tenure."):
        return {}
    return {name: value for name, value in vars(record).items() if name not in STANDARD}


class Lines(logging.Formatter):
    """For people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s[%(process)d] %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        line = super().formatMessage(record)
        if getattr(record, SPELLED_OUT, False):  # which worker it was is not in the words
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
    """For programs: one object a line."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
            **({"worker": _Worker.name} if _Worker.name else {}),
            **job_fields(),
        }
        for name, value in extra_fields(record).items():
            told[name if name not in RESERVED else f"{name}_"] = value
        if fields := getattr(record, "fields", None):
            told["fields"] = fields
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


def _word(value: object) -> str:
    """On one line, and quoted where it would not be seen where it ends."""
    if isinstance(value, list | tuple | set | frozenset):
        value = ",".join(map(str, value))
    text = str(value)
    return text if text and text.isprintable() and not set(text) & {" ", '"', "="} else json.dumps(text, ensure_ascii=False)
