"""System checks: what `manage.py check` reports about the settings."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning

from tenure.integrations.django.app import app
from tenure.integrations.django.conf import database_dsn, problems_of
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
    return _suspicious(given)


def _suspicious(given: dict[str, Any]) -> list[CheckMessage]:
    alias = given.get("DATABASE", "default")
    if alias == "default" or given.get("ENQUEUE_IN_TRANSACTION") is not None:
        return []
    return [
        CheckWarning(
            f"jobs are in the database {alias!r}, so those that are enqueued inside atomic() on 'default' are not part of that "
            "transaction",
            hint="Use the same database, or set TENURE['ENQUEUE_IN_TRANSACTION'] to True or False to say that this is intended.",
            id="tenure.W001",
        )
    ]
