"""Errors as problem documents (RFC 9457). Each ends with the way out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired
from urllib.parse import quote

from starlette.responses import Response
from typing_extensions import TypedDict

from tenure.model import errors
from tenure.model.payloads import clean_text
from tenure.store.faults import Refused, StatementTimeout

MEDIA_TYPE = "application/problem+json"

VALUES = frozenset({"args", "input", "output"})
"""Members of bodies that have the arguments or the output of a job."""

LONGEST_NAME = 200
"""Characters of a name that a client chose, in a path."""

LONGEST_DETAIL = 4000
"""Characters about arguments that do not fit. Each unknown one has a line."""

MOST_FIELDS = 50

PathOf = Callable[[str | None], str | None]
"""Where a request gives an option. Of None: what has the options that it takes."""


class FieldProblem(TypedDict):
    """A value that was refused."""

    path: str
    message: str


class ProblemDocument(TypedDict):
    """An error, as described by RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: NotRequired[list[FieldProblem]]


@dataclass(eq=False)
class Problem(Exception):  # noqa: N818 - the name of the standard
    """Raised anywhere below a route; sent as a problem document."""

    status: int
    slug: str
    detail: str
    errors: Sequence[FieldProblem] = ()
    headers: Mapping[str, str] | None = None

    def document(self) -> ProblemDocument:
        document: ProblemDocument = {
            "type": f"urn:tenure:problem:{self.slug}",
            "title": self.slug.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            document["errors"] = list(self.errors)
        return document

    def response(self) -> Response:
        text = json.dumps(self.document(), ensure_ascii=False).encode("utf-8", "replace")
        return Response(text, self.status, dict(self.headers or {}), MEDIA_TYPE)


def internal_error() -> Problem:
    """Opaque: what went wrong is in the log of the server."""
    return Problem(500, "internal-error", "the server failed; its log has the reason")


def _names(location: Sequence[str | int], given: Any, *, missing: bool) -> Iterator[str]:
    """Without the names of alternatives, such as `int` or `list[Bound]`, which pydantic adds for a value of several types."""
    for n, name in enumerate(location):
        if _has(given, name):
            given = given[name]
        elif not missing or n + 1 < len(location):
            continue
        yield short_name(name)


def short_name(name: str | int) -> str:
    """An answer must not repeat all of a large body."""
    return str(name)[:LONGEST_NAME]


def _has(given: Any, name: str | int) -> bool:
    if isinstance(given, list):
        return isinstance(name, int) and 0 <= name < len(given)
    return isinstance(given, dict) and name in given


def _nowhere(option: str | None) -> str | None:  # noqa: ARG001
    return None


def body_path(*names: str) -> str:
    """Of a value in a body. Arguments and outputs have paths of their own: `args.format`, but `body.priority`."""
    return ".".join(names if names and names[0] in VALUES else ("body", *names))


def of_error(error: Exception, path_of: PathOf = _nowhere, arguments: str = "args") -> Problem | None:
    """The problem that an error of Tenure means for a caller. None: a bug. `path_of`: where the caller gave an option.
    `arguments`: the member of the body that has those of a job."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, errors.InvalidInput):
        return invalid_input(error, arguments, None)
    if isinstance(error, errors.InvalidOutput):
        return Problem(422, "invalid-output", f"{error}: give another one", [{"path": "output", "message": str(error)}])
    for kind, status, slug in _PLAIN:
        if isinstance(error, kind):
            return Problem(status, slug, str(error), _option_fields(error, path_of) if status == 422 else ())
    return _of_store(error)


_PLAIN: Sequence[tuple[type[Exception], int, str]] = (
    (errors.UnknownKind, 404, "unknown-kind"),
    (errors.NotEnqueued, 422, "invalid-input"),
    (errors.JobNotFound, 404, "job-not-found"),
    (errors.ScheduleNotFound, 404, "schedule-not-found"),
    (errors.ScheduleConflict, 409, "schedule-conflict"),
    (errors.KeyTaken, 409, "key-taken"),
    (errors.NotPossible, 409, "not-possible"),
    (errors.JobsLocked, 409, "jobs-locked"),
    (errors.JobsRefused, 409, "jobs-refused"),
    (errors.ConfigError, 422, "invalid-value"),
)


def _of_store(error: Exception) -> Problem | None:
    """Without the message of PostgreSQL where it could name hosts or accounts."""
    if isinstance(error, StatementTimeout):
        return Problem(503, "too-slow", "PostgreSQL took too long: narrow the filter, or try again later", headers=_SOON)
    if isinstance(error, errors.StoreUnavailable):
        return Problem(503, "database-unavailable", "PostgreSQL cannot be reached now: try again", headers=_SOON)
    if isinstance(error, errors.SchemaMismatch):
        return Problem(503, "schema-mismatch", "the database's schema does not match this version: run `tenure migrate`")
    if isinstance(error, Refused) and error.is_configuration:
        return Problem(403, "read-only", "the server's account may not do this: `tenure sql --roles` prints the grants")
    if isinstance(error, Refused):
        return Problem(
            422,
            "refused",
            f"PostgreSQL refuses this request by a constraint or trigger (SQLSTATE {error.sqlstate}): give other or shorter "
            "values; the log of PostgreSQL has the reason",
        )
    return None


_SOON = {"Retry-After": "1"}


def invalid_input(error: errors.InvalidInput, arguments: str, given: Any) -> Problem:
    """`given`: the arguments in the body, whose paths are named. None: they were not in the body."""
    detail = f"{clean_text(str(error), LONGEST_DETAIL)}: {how_to_fit(error.kind)}"
    return Problem(422, "invalid-input", detail, [_field(problem, arguments, given) for problem in error.problems[:MOST_FIELDS]])


def _field(problem: errors.InputProblem, arguments: str, given: Any) -> FieldProblem:
    names = map(short_name, problem.path) if given is None else _names(problem.path, given, missing=problem.missing)
    return {"path": ".".join([arguments, *names]), "message": problem.message}


def _option_fields(error: Exception, path_of: PathOf) -> list[FieldProblem]:
    option = error.option if isinstance(error, errors.ConfigError | errors.InvalidPayload) else None
    path = path_of(option)
    return [] if path is None else [{"path": path, "message": str(error)}]


def how_to_fit(kind: str) -> str:
    """The way out, for arguments and outputs that do not fit."""
    return f"correct it; GET /_api/kinds/{quote(kind)} has the schema"


def invalid_value(path: str, message: str, slug: str = "invalid-value") -> Problem:
    """Of a value that has the right type: `query.last is '1s': give ...`."""
    return Problem(422, slug, f"{path} {message}", [{"path": path, "message": message}])


def invalid(errors_: Sequence[Mapping[str, Any]], where: Literal["body", "query"], given: Any) -> Problem:
    """From the errors of pydantic: a path in what was given and a message for each field, without the values."""
    named = [
        (list(_names(one["loc"], given, missing=one["type"] == "missing")), str(one["msg"])) for one in errors_[:MOST_FIELDS]
    ]
    found: list[FieldProblem] = [
        {"path": body_path(*names) if where == "body" else ".".join([where, *names]), "message": message}
        for names, message in named
    ]
    detail = "; ".join(f"{one['path']}: {one['message']}" for one in found[:3])
    return Problem(422, "invalid-request", f"{detail}: correct the request; /_api/openapi.json describes it", found)
