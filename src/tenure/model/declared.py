"""A schedule of a known kind: the kind's definition supplies the defaults and checks the input."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tenure.model.errors import InvalidInput
from tenure.model.kinds import Kind
from tenure.model.payloads import plain_json
from tenure.model.schedules import Schedule, schedule


def schedule_of(kind: Kind, *, name: str | None = None, input: Any = None, **options: Any) -> Schedule:  # noqa: A002
    """Raises `InvalidInput` if the input does not fit the job, or if it is missing and the job needs one.

    Its jobs have no idempotency key: the planned time prevents duplicates.
    """
    given = {option: value for option, value in options.items() if value is not None}
    defaults = {
        "queue": kind.own_queue,
        "priority": kind.own_priority,
        "capability": kind.capability,
        "expires": kind.expires,
    }
    return schedule(
        name=kind.name if name is None else name, kind=kind.name, input=checked_input(kind, input), **{**defaults, **given}
    )


def checked_input(kind: Kind, given: Any) -> Any:
    """The input as it is stored."""
    if given is None:
        try:
            return json.loads(kind.input.encode((), {}))
        except InvalidInput as error:
            raise InvalidInput(
                kind.name,
                [
                    replace(problem, message=f"{problem.message}; give the schedule an input={{...}}")
                    for problem in error.problems
                ],
            ) from None
    kind.input.decode(plain_json(given, what=f"the input of job {kind.name!r}"))
    return given
