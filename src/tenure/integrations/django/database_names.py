"""The test databases of a process, and of those that it starts.

During tests Django replaces the names of the databases in this process. A handler with `run_in="process"` runs in another one,
which would set up Django with the real ones. For tests that use no database, Django creates none, and the names stay.
"""

from __future__ import annotations

import json
import os

from django.db import connections
from django.test import utils

from tenure.model.errors import ConfigError

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


def refuse_real(alias: str, real: dict[str, str]) -> None:
    """Raises in a test run that has not created a test database: what a test enqueues must not reach real workers."""
    database = connections.settings[alias]
    name = str(database.get("NAME") or "")
    is_for_tests = name != real.get(alias) or name == (database.get("TEST") or {}).get("NAME")
    if is_for_tests or not _in_test_run():
        return
    raise ConfigError(
        f"this test has no test database, and must not use the real one, {name!r}: make it a django.test.TestCase or mark it "
        "with @pytest.mark.django_db; or use run_inline(app) or Recorder(app) of tenure.testing, which need no database"
    )


def _in_test_run() -> bool:
    """Between `setup_test_environment()` and its counterpart, which `manage.py test` and pytest-django call."""
    return hasattr(getattr(utils, "_TestState", None), "saved_data")
