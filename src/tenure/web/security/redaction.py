"""Hides secrets in what is shown: values under names such as `password`, in inputs, outputs, log lines and the audit log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tenure.client.report.life import LogLine, Report
from tenure.client.status import JobStatus
from tenure.model.payloads import TOO_DEEP
from tenure.web.problems import Problem

REDACTED = "[redacted]"

SECRET_NAMES = (
    "password", "passwd", "passphrase", "secret", "token", "authorization", "cookie", "credential", "credentials",
    "api_key", "access_key", "private_key", "client_secret",
)  # fmt: skip

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


class Redaction:
    """A name is secret if its words contain those of a listed one: `db_password`, `apiKey` and `X-Api-Key`, not `max_tokens`."""

    def __init__(self, names: Iterable[str] = SECRET_NAMES) -> None:
        self._secret = {tuple(_words(name)) for name in names}
        self._longest = max((len(words) for words in self._secret), default=0)
        self._known: dict[str, bool] = {}

    def hide(self, value: Any) -> Any:
        """A copy without secrets."""
        try:
            return self._hidden(value)
        except RecursionError:
            return TOO_DEEP

    def job(self, job: JobStatus) -> JobStatus:
        hidden = {name: self.hide(getattr(job, name)) for name in ("input", "output", "auth", "meta")}
        system = self.hide(job.system)
        return replace(job, **hidden, system=None if system == TOO_DEEP else system)

    def report(self, report: Report) -> Report:
        return replace(report, job=self.job(report.job), log=[self._line(line) for line in report.log])

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: REDACTED if self._is_secret(name) and _is_set(inner) else self._hidden(inner)
                for name, inner in value.items()
            }
        return [self._hidden(item) for item in value] if isinstance(value, list) else value

    def _line(self, line: LogLine) -> LogLine:
        return replace(line, fields=self.hide(line.fields))

    def _is_secret(self, name: object) -> bool:
        text = str(name)
        known = self._known.get(text)
        if known is None:
            known = self._matches(_words(text))
            if len(self._known) < 10_000 and len(text) <= 200:
                self._known[text] = known
        return known

    def _matches(self, words: list[str]) -> bool:
        joined = "".join(words)
        return any(
            tuple(words[at : at + length]) in self._secret for length in range(1, self._longest + 1) for at in range(len(words))
        ) or any(joined == "".join(secret) for secret in self._secret)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _is_set(value: Any) -> bool:
    return value is not None and value != ""


def refuse_hidden(redaction: Redaction, given: Any, where: str) -> None:
    """In a filter: who can search for a hidden value can find it out, one guess after the other."""
    if redaction.hide(given) != given:
        raise Problem(422, "redacted", f"{where} asks for a value that is hidden: filter by other fields")


def refuse_redacted(value: Any, where: str) -> None:
    """A view with hidden values must not be stored as if it were the input."""
    if value == REDACTED:
        raise Problem(422, "redacted", f"{where} is {REDACTED!r}, which replaces a hidden value: give the value itself")
    if isinstance(value, dict):
        for name, inner in value.items():
            refuse_redacted(inner, f"{where}.{name}")
    if isinstance(value, list):
        for number, inner in enumerate(value):
            refuse_redacted(inner, f"{where}.{number}")
