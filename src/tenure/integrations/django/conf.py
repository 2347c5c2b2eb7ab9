"""The setting `TENURE` of a Django project, and the database that it names in `DATABASES`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from tenure.model.errors import ConfigError
from tenure.setting_sources import PREFIX
from tenure.settings import setting_names
from tenure.store.dsn import dsn_of

OWN = ("DATABASE", "LISTEN_DATABASE", "ENQUEUE_IN_TRANSACTION", "JOB_MODULES")
FROM_DATABASES = ("dsn", "listen_dsn", "app", "pooled")
"""Settings that follow from others here."""

TASK_BACKEND = "tenure.integrations.django.task_backend.TenureBackend"

ADDRESS = ("NAME", "HOST", "PORT", "USER", "PASSWORD", "OPTIONS", "DISABLE_SERVER_SIDE_CURSORS")
"""What makes up the address of a database in DATABASES."""


@dataclass(frozen=True, kw_only=True)
class ProjectSettings:
    """The setting `TENURE`. Names that are not listed here are Tenure's own settings, in capitals."""

    database: str = "default"
    """The alias in DATABASES of the database that holds the jobs."""
    listen_database: str | None = None
    """If `database` leads through a transaction pooler: the alias of a direct way to the same database, for LISTEN."""
    enqueue_in_transaction: bool = True
    """Whether a job that is enqueued inside `atomic()` on that database is part of the transaction."""
    job_modules: tuple[str, ...] = ("jobs",)
    """The modules of installed apps that are imported at the start, because they define jobs. With Tenure as a backend of
    `django.tasks`, the default also has `tasks`."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """Tenure's own settings, by their names. An environment variable TENURE_... has precedence."""


def project_settings() -> ProjectSettings:
    """Raises `ConfigError`, which lists all problems."""
    given = getattr(settings, "TENURE", None) or {}
    if problems := problems_of(given):
        raise ConfigError("settings.TENURE: " + "; ".join(problems))
    modules = given.get("JOB_MODULES", ("jobs", "tasks") if runs_tasks() else ProjectSettings.job_modules)
    return ProjectSettings(
        database=given.get("DATABASE", ProjectSettings.database),
        listen_database=given.get("LISTEN_DATABASE"),
        enqueue_in_transaction=given.get("ENQUEUE_IN_TRANSACTION", ProjectSettings.enqueue_in_transaction),
        job_modules=tuple([modules] if isinstance(modules, str) else modules),
        own={name.lower(): value for name, value in given.items() if name not in OWN},
    )


def runs_tasks() -> bool:
    backends = (getattr(settings, "TASKS", None) or {}).values()
    return any(backend.get("BACKEND") == TASK_BACKEND for backend in backends)


def problems_of(given: object) -> list[str]:
    """What is wrong with the value of `TENURE`, each with its remedy."""
    if not isinstance(given, Mapping):
        return [f"it is {given!r}, but must be a dictionary"]
    known = [*OWN, *(name.upper() for name in setting_names() if name not in FROM_DATABASES)]
    found = []
    for name in given:
        if str(name).lower() in FROM_DATABASES:
            found.append(f"{name!r} follows from DATABASES: set DATABASE to the alias of a database instead")
        elif name not in known:
            near = get_close_matches(str(name).upper(), known, n=1)
            found.append(f"unknown setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    for name in ("DATABASE", "LISTEN_DATABASE"):
        alias = given.get(name, "default")
        if alias is not None and alias not in connections.settings:
            aliases = ", ".join(map(repr, connections.settings))
            found.append(f"{name} is {alias!r}, but DATABASES has no such alias: use one of {aliases}")
    return found


def addresses() -> list[dict[str, Any]]:
    """Of all databases. During tests Django replaces their names by those of the test databases."""
    return [{name: database.get(name) for name in ADDRESS} for database in connections.settings.values()]


def database_dsn(alias: str) -> str:
    """The database that Django's connections with this alias lead to at this moment: in tests, the test database."""
    wrapper = connections[alias]
    if wrapper.vendor != "postgresql":
        raise ConfigError(
            f"the database {alias!r} is on {wrapper.vendor}, but Tenure needs PostgreSQL: set TENURE['DATABASE'] to the alias of "
            "one on PostgreSQL"
        )
    try:
        parameters = dict(wrapper.get_connection_params())
    except ImproperlyConfigured as error:
        raise ConfigError(f"the database {alias!r}: {error}") from error
    if role := wrapper.settings_dict["OPTIONS"].get("assume_role"):
        parameters["options"] = f"{parameters.get('options') or ''} -c role={role}".strip()
    return dsn_of(parameters)


def tenure_settings(project: ProjectSettings) -> dict[str, Any]:
    """What the project's settings say about the settings of Tenure, without those that the environment sets."""
    in_environment = {name for name in setting_names() if os.environ.get(f"{PREFIX}{name.upper()}")}
    own = {name: value for name, value in project.own.items() if name not in in_environment}
    own.setdefault("name", _project_name())
    own["dsn"] = database_dsn(project.database)
    if project.listen_database is not None:
        own["listen_dsn"] = database_dsn(project.listen_database)
    if connections.settings[project.database].get("DISABLE_SERVER_SIDE_CURSORS"):
        own["pooled"] = True  # Django's own setting for transaction poolers
    return own


def _project_name() -> str:
    """The package of the settings, so that `manage.py`, workers and scripts are one app."""
    module = getattr(settings, "SETTINGS_MODULE", None) or "django"
    return str(module).partition(".")[0]
