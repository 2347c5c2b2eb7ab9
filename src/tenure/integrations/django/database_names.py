"""The test databases of a process, and of those that it starts.

During tests Django replaces the names of the databases in this process. A handler with `run_in="process"` runs in another one,
which would set up Django with the real ones.
"""

from __future__ import annotations

import json
import os

from django.db import connections

VARIABLE = "TENURE_TEST_DATABASES"


def names() -> dict[str, str]:
    """Of all databases, by alias."""
    return {alias: str(settings.get("NAME") or "") for alias, settings in connections.settings.items()}


def pass_on(real: dict[str, str]) -> None:
    """Tells processes that are started from now on which databases to use, if they are not the real ones."""
    now = names()
    if now == real:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = json.dumps(now)


def take_over() -> None:
    """Uses the databases of the process that has started this one."""
    for alias, name in json.loads(os.environ.get(VARIABLE) or "{}").items():
        if alias in connections.settings:
            connections.settings[alias]["NAME"] = name
