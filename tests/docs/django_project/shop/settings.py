"""The settings of the project that the page begins with. The page adds to them."""

import os

from psycopg.conninfo import conninfo_to_dict

_GIVEN = conninfo_to_dict(os.environ["TENURE_DSN"])

SECRET_KEY = "of the page"
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": _GIVEN.pop("dbname"), "OPTIONS": _GIVEN}}
INSTALLED_APPS = ["orders"]
ROOT_URLCONF = "shop.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
