"""A Django project in a nutshell: the ORM on the test's database, and a model of the table `payments`."""

from __future__ import annotations

import django
import django.conf
import psycopg
import pytest
from django.db import connections
from django.db.backends.postgresql.features import DatabaseFeatures
from psycopg.conninfo import conninfo_to_dict


def skip_on_old_servers(dsn: str) -> None:
    """Django supports fewer versions of PostgreSQL than Tenure does."""
    [oldest, *_] = DatabaseFeatures.minimum_database_version
    with psycopg.connect(dsn) as connection:
        if connection.info.server_version < 10_000 * oldest:
            pytest.skip(f"Django {django.get_version()} needs PostgreSQL {oldest} or newer")


def set_up(dsn: str, **options: object) -> None:
    skip_on_old_servers(dsn)
    if not django.conf.settings.configured:
        database = {"ENGINE": "django.db.backends.postgresql", "NAME": "said below"}
        django.conf.settings.configure(DATABASES={"default": database}, LOGGING_CONFIG=None)
        django.setup()
    given = conninfo_to_dict(dsn)
    # One object for all threads; each of them opens a connection of its own.
    usual = {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False}
    connections["default"].settings_dict.update({"NAME": given.pop("dbname"), "OPTIONS": given, **usual, **options})


def payment_model() -> type:
    """Made once: Django keeps a register of models."""
    from django.apps import apps
    from django.db import models

    known = apps.all_models["shop"].get("payment")
    if known is not None:
        return known

    class Payment(models.Model):  # noqa: DJ008 - never printed
        name = models.TextField(primary_key=True)

        class Meta:
            app_label = "shop"
            db_table = "payments"
            managed = False

    return Payment
