"""Loads an app in a separate process and returns facts about it, so that no user code runs in the calling process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tenure.manager.loading import load_app
from tenure.model.errors import ConfigError, TenureError

if TYPE_CHECKING:
    from tenure.app import Tenure
    from tenure.model.kinds import Kind

EXAMPLES: Mapping[Any, str] = {str: "text", int: "1", float: "1.5", bool: "true"}
NAMED_EXAMPLES = {"name": "Ada", "email": "ada@example.com", "path": "cat.png"}


@dataclass(frozen=True, slots=True)
class JobFacts:
    name: str
    queue: str
    example: Sequence[str] | None
    """NAME=VALUE for each required argument; None: one of them has no simple form."""


@dataclass(frozen=True, slots=True)
class AppFacts:
    dsn: str | None
    """The database that is set in the code."""
    jobs: Sequence[JobFacts]


def ask_app(app: str, folder: str) -> AppFacts:
    """Raises `ConfigError` when the app cannot be loaded."""
    command = [sys.executable, "-m", "tenure.manager.ask", app, folder]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        answer = json.loads(ended.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        raise ConfigError(f"--app {app} cannot be loaded:\n{ended.stderr.strip()}") from None
    if "problem" in answer:
        raise ConfigError(answer["problem"])
    return AppFacts(answer["dsn"], [JobFacts(**job) for job in answer["jobs"]])


def facts_of(app: Tenure) -> AppFacts:
    return AppFacts(app.given.get("dsn"), [JobFacts(kind.name, kind.queue, _example(kind)) for kind in app.kinds.values()])


def _example(kind: Kind) -> list[str] | None:
    needed = [parameter for parameter in kind.signature.parameters if parameter.required]
    if any(parameter.annotation not in EXAMPLES for parameter in needed):
        return None
    return [f"{parameter.name}={_value(parameter.name, parameter.annotation)}" for parameter in needed]


def _value(name: str, annotation: Any) -> str:
    return NAMED_EXAMPLES.get(name, EXAMPLES[str]) if annotation is str else EXAMPLES[annotation]


if __name__ == "__main__":
    try:
        print(json.dumps(asdict(facts_of(load_app(sys.argv[1], sys.argv[2])))))  # noqa: T201 - read by the calling process
    except TenureError as error:
        print(json.dumps({"problem": str(error)}))  # noqa: T201
