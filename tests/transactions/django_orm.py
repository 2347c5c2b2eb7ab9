"""A Django project in a nutshell: the ORM on the test's database, and a model of the table `payments`."""

from __future__ import annotations

import django
import django.conf
from django.db import connections
from psycopg.conninfo import conninfo_to_dict


def set_up(dsn: str, **options: object) -> None:
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
