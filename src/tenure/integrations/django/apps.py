"""What Django runs at its start."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

from django.apps import AppConfig, apps
from django.core.checks import register
from django.core.signals import setting_changed
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules

from tenure.integrations.django import database_names
from tenure.integrations.django.app import app
from tenure.integrations.django.conf import runs_tasks
from tenure.job_collections import Jobs
from tenure.model.errors import ConfigError
from tenure.store.test_databases import empty


class TenureConfig(AppConfig):
    name = "tenure.integrations.django"
    label = "tenure"
    verbose_name = "Tenure"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from tenure.integrations.django import checks  # noqa: PLC0415 - needs Django's settings

        database_names.take_over()
        app.real_databases = database_names.names()
        register(checks.check_settings)
        if runs_tasks():
            import_module("django.tasks")  # brings its checks, which ask the backend
        setting_changed.connect(_on_setting_changed)
        connection_created.connect(_on_connection_created)
        try:
            modules = app.project.job_modules
        except ConfigError:
            return  # the check reports it, with all other problems
        autodiscover_modules(*modules)
        for config in apps.get_app_configs():
            include_collections([f"{config.name}.{name}" for name in modules])
        post_migrate.connect(_on_flush, sender=self)


def include_collections(modules: Iterable[str]) -> None:
    """The jobs of reusable apps, which define them without an app: `jobs = Jobs(prefix="mails")`."""
    for name in modules:
        for value in list(vars(sys.modules.get(name, object)).values()):
            if isinstance(value, Jobs):
                app.include(value)


def _on_flush(*, using: str, **given: Any) -> None:
    """After a `TransactionTestCase` Django empties its own tables. `migrate` sends the same signal, but with its plan."""
    is_test = database_names.names() != app.real_databases
    if using == app.project.database and "plan" not in given and is_test:
        with suppress(ConfigError):  # not the name of a test database
            empty(app.settings.database)


def _on_setting_changed(*, setting: str, **_: Any) -> None:
    """`override_settings` in tests."""
    if setting == "TENURE":
        app.reread_settings()


def _on_connection_created(*, connection: Any, **_: Any) -> None:
    """Django connects without a database to create or drop one. Nothing may be connected to it then."""
    if connection.alias == NO_DB_ALIAS:
        app.close_sync()
