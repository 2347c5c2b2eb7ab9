"""The app for processes that `manage.py` does not set up: `tenure worker --app tenure.integrations.django.worker:app`."""

from __future__ import annotations

import os

import django
from django.apps import apps

from tenure.integrations.django.app import app
from tenure.model.errors import ConfigError

if "DJANGO_SETTINGS_MODULE" not in os.environ:
    raise ConfigError("DJANGO_SETTINGS_MODULE is not set: use `manage.py tenure ...`, or set it as for Django itself")
django.setup()  # also imports the modules that define jobs
if not apps.is_installed("tenure.integrations.django"):
    raise ConfigError("'tenure.integrations.django' is not in INSTALLED_APPS: add it, so that the jobs of your apps are found")
app.follow_django()

__all__ = ["app"]
