"""The settings of a Django project, for the page that shows one. Copied beside its programs."""

import os

from psycopg.conninfo import conninfo_to_dict

_GIVEN = conninfo_to_dict(os.environ["TENURE_DSN"])

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _GIVEN.pop("dbname"),
        "OPTIONS": _GIVEN,
    }
}
