"""Hides secrets in what is shown: values under names such as `password`, and where they appear again in errors and log lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from tenure.client.bulk import BULK
from tenure.client.report.life import Attempt, Incident, Moment, Report, ReportedLogLine
from tenure.client.status import JobStatus
from tenure.model.payloads import TOO_DEEP
from tenure.web.problems import invalid_value
from tenure.web.security.secret_names import SECRET_NAMES, SecretNames

REDACTED = "[redacted]"

SHORTEST_SECRET = 6
"""Characters of a secret that is also looked for in texts: shorter ones are parts of many other words."""

MOST_SECRETS = 100
"""Of one job. They are looked for one by one."""

SCHEMES = frozenset({"bearer", "basic", "digest", "token"})

PAIR_NAMES, PAIR_VALUES = frozenset({"name", "key", "header", "field"}), frozenset({"value", "values"})
"""Of an object that is one name with its value: {"name": "DB_PASSWORD", "value": "..."}. In any case: also `Name` and `Value`."""


class KnownSecrets:
    """The secrets of one job, to be hidden where its handler has written them into a text."""

    def __init__(self, found: Iterable[str]) -> None:
        self._whole = frozenset(secret for secret in found if secret)
        forms = {form for secret in self._whole for form in _forms(secret) if len(form) >= SHORTEST_SECRET}
        self._texts = sorted(forms, key=len, reverse=True)[:MOST_SECRETS]  # the longest first: it may contain another one

    @property
    def none(self) -> bool:
        return not self._whole

    def hide(self, value: Any) -> Any:
        """In a text, or in all texts of a JSON value."""
        if self.none:
            return value
        try:
            return self._hidden(value)
        except RecursionError:
            return TOO_DEEP

    def hide_name(self, name: str | None) -> str | None:
        """In a name that is made of values: the key of a job, or its limit group (`kind:pull/tenant=7`). Short ones too."""
        if name is None:
            return None
        begin, equals, value = name.rpartition("=")
        return f"{begin}{equals}{REDACTED}" if value in self._whole else self.hide(name)

    def changed(self, change: Callable[[str], str]) -> KnownSecrets:
        """For texts that were changed in this way."""
        return KnownSecrets([change(text) for text in self._texts])

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, str):
            for secret in self._texts:
                value = value.replace(secret, REDACTED)
            return value
        if isinstance(value, dict):
            return {name: self._hidden(inner) for name, inner in value.items()}
        return [self._hidden(item) for item in value] if isinstance(value, list) else value


class Redaction:
    def __init__(self, names: Iterable[str] = SECRET_NAMES) -> None:
        self._names = SecretNames(names)

    def hide(self, value: Any) -> Any:
        """A copy without secrets."""
        try:
            return self._hidden(value)
        except RecursionError:
            return TOO_DEEP

    def job(self, job: JobStatus) -> JobStatus:
        known = self.secrets_of(job)
        hidden = {name: self.hide(getattr(job, name)) for name in ("auth", "meta")}
        hidden["input"] = self.hide(without_key(job.input) if job.kind == BULK else job.input)
        system = self.hide(job.system)
        if known.none and all(getattr(job, name) == value for name, value in {**hidden, "system": system}.items()):
            output = self.hide(job.output)
            return job if output == job.output else replace(job, output=output)
        return replace(
            job,
            **hidden,
            output=known.hide(self.hide(job.output)),
            error=known.hide(job.error),
            key=known.hide_name(job.key),
            limit_group=known.hide_name(job.limit_group),
            progress_message=known.hide(job.progress_message),
            system=None if system == TOO_DEEP else known.hide(system),
        )

    def report(self, report: Report) -> Report:
        known = self.secrets_of(report.job)
        progress = report.progress
        return replace(
            report,
            job=self.job(report.job),
            attempts=[_attempt(one, known) for one in report.attempts],
            incidents=[_incident(one, known) for one in report.incidents],
            events=[_moment(one, known) for one in report.events],
            progress=None if progress is None else replace(progress, message=known.hide(progress.message)),
            log=[self._line(line, known) for line in report.log],
        )

    def secrets_of(self, job: JobStatus) -> KnownSecrets:
        """What its caller has given as a secret. Not those of an input that was too large to be read."""
        try:
            keys = [filter_key(job.input)] if job.kind == BULK else []
            given = (job.input, job.auth, job.meta, job.system)
            return KnownSecrets([*keys, *(text for value in given for text in self._secrets(value))])
        except RecursionError:
            return KnownSecrets([])

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, dict):
            paired = self._paired(value)
            return {
                name: REDACTED if self._is_secret(name, paired=paired) and _is_set(inner) else self._hidden(inner)
                for name, inner in value.items()
            }
        if not isinstance(value, list):
            return value
        if self._is_pair(value):
            return [value[0], REDACTED]
        return [self._hidden(item) for item in value]

    def _secrets(self, value: Any) -> Iterator[str]:
        """All texts and numbers that are hidden."""
        if isinstance(value, dict):
            paired = self._paired(value)
            for name, inner in value.items():
                yield from _texts(inner) if self._is_secret(name, paired=paired) else self._secrets(inner)
        elif isinstance(value, list):
            if self._is_pair(value):
                yield from _texts(value[1])
            else:
                for item in value:
                    yield from self._secrets(item)

    def _is_pair(self, value: list[Any]) -> bool:
        """A header, or a row of a table with names: ["Authorization", "Bearer ..."]."""
        return len(value) == 2 and isinstance(value[0], str) and is_text_or_number(value[1]) and self._names.include(value[0])

    def _is_secret(self, name: Any, *, paired: bool) -> bool:
        return self._names.include(name) or (paired and str(name).lower() in PAIR_VALUES)

    def _paired(self, value: dict[Any, Any]) -> bool:
        """It is one name with its value, and the name is a secret one."""
        names = [inner for name, inner in value.items() if isinstance(inner, str) and str(name).lower() in PAIR_NAMES]
        return any(self._names.include(name) for name in names)

    def _line(self, line: ReportedLogLine, known: KnownSecrets) -> ReportedLogLine:
        return replace(line, message=known.hide(line.message), fields=known.hide(self.hide(line.fields)))


def without_key(action: Any) -> Any:
    """A bulk action, without the idempotency key in its filter: it may be made of a secret of jobs that do not exist any more."""
    if not filter_key(action):
        return action
    return {**action, "filter": {**action["filter"], "key": REDACTED}}


def filter_key(action: Any) -> str:
    """Of a bulk action."""
    given = action.get("filter") if isinstance(action, dict) else None
    key = given.get("key") if isinstance(given, dict) else None
    return key if isinstance(key, str) else ""


def _attempt(attempt: Attempt, known: KnownSecrets) -> Attempt:
    return replace(attempt, error=known.hide(attempt.error))


def _incident(incident: Incident, known: KnownSecrets) -> Incident:
    return replace(incident, reason=known.hide(incident.reason))


def _moment(moment: Moment, known: KnownSecrets) -> Moment:
    return replace(moment, text=known.hide(moment.text))


def _texts(value: Any) -> Iterator[str]:
    if is_text_or_number(value):
        yield str(value)
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def is_text_or_number(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _forms(secret: str) -> set[str]:
    """As it may appear in a text: itself, in quotes, and without the scheme of an Authorization header."""
    scheme, _, rest = secret.partition(" ")
    plain = {secret, rest} if scheme.lower() in SCHEMES else {secret}
    return plain | {repr(one)[1:-1] for one in plain} | {json.dumps(one)[1:-1] for one in plain}


def _is_set(value: Any) -> bool:
    return value is not None and value != ""


def refuse_hidden(redaction: Redaction, given: Any, where: str) -> None:
    """In a filter: who can search for a hidden value can find it out, one guess after the other."""
    if redaction.hide(given) != given:
        raise invalid_value(where, "asks for a value that is hidden: filter by other fields", "redacted")


def refuse_redacted(value: Any, where: str) -> None:
    """A view with hidden values must not be stored as if it were the input."""
    path = _path_of_redacted(value)
    if path is not None:
        message = f"is {REDACTED!r}, which replaces a hidden value: give the value itself"
        raise invalid_value(".".join([where, *reversed(path)]), message, "redacted")


def _path_of_redacted(value: Any) -> list[str] | None:
    """The first one's, the innermost name first: made only when it is found, because most values have none."""
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            path = _path_of_redacted(inner)
            if path is not None:
                return [*path, str(name)]
    return [] if value == REDACTED else None
