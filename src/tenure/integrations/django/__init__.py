"""Tenure in a Django project: add `"tenure.integrations.django"` to INSTALLED_APPS, and use this app in your `jobs.py` files."""

from tenure.integrations.django.app import DjangoTenure, app

__all__ = ["DjangoTenure", "app"]
