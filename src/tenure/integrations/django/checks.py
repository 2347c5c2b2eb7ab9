"""System checks: what `manage.py check` reports about the settings."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning
from django.utils.module_loading import module_has_submodule

from tenure.integrations.django.app import app
from tenure.integrations.django.conf import database_dsn, problems_of, runs_tasks
from tenure.model.errors import ConfigError


def check_settings(app_configs: Any, **_: Any) -> list[CheckMessage]:
    del app_configs
    given = getattr(settings, "TENURE", None) or {}
    if problems := problems_of(given):
        return [Error(f"settings.TENURE: {problem}", id="tenure.E001") for problem in problems]
    try:
        database_dsn(given.get("DATABASE", "default"))
        app.settings  # noqa: B018 - reads all settings, and raises
    except ConfigError as error:
        return [Error(str(error), id="tenure.E002")]
    return [*_other_database(given), *_tasks_that_are_not_found(given)]


def _tasks_that_are_not_found(given: dict[str, Any]) -> list[CheckMessage]:
    """Tasks are enqueued by web processes, which have imported them, but workers import the modules in JOB_MODULES alone."""
    modules = app.project.job_modules
    missing = [config.name for config in apps.get_app_configs() if module_has_submodule(config.module, "tasks")]
    if "JOB_MODULES" not in given or "tasks" in modules or not missing or not runs_tasks():
        return []
    return [
        CheckWarning(
            f"workers do not run the tasks in {', '.join(f'{name}.tasks' for name in missing)}, unless a module in "
            f"TENURE['JOB_MODULES'] ({', '.join(modules)}) imports them",
            hint="Add 'tasks' to JOB_MODULES, or remove the setting: with Tenure as a task backend, the default has it.",
            id="tenure.W002",
        )
    ]


def _other_database(given: dict[str, Any]) -> list[CheckMessage]:
    alias = given.get("DATABASE", "default")
    if alias == "default" or given.get("ENQUEUE_IN_TRANSACTION") is not None:
        return []
    return [
        CheckWarning(
            f"jobs are in the database {alias!r}, so those that are enqueued inside atomic() on 'default' are not part of that "
            "transaction",
            hint="Use the same database, or set TENURE['ENQUEUE_IN_TRANSACTION'] to True or False if this is intended.",
            id="tenure.W001",
        )
    ]
