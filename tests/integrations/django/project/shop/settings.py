"""Settings of a small project. The tests pass what they vary as JSON: SHOP_DATABASE, SHOP_SETTINGS, SHOP_APPS."""

import json
import os

from psycopg.conninfo import conninfo_to_dict

_DSN = conninfo_to_dict(os.environ["SHOP_DSN"])
_VARIED = json.loads(os.environ.get("SHOP_DATABASE", "{}"))

SECRET_KEY = "of the tests"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _DSN.pop("dbname"),
        "USER": _DSN.pop("user"),
        "PASSWORD": _DSN.pop("password", ""),
        "HOST": _DSN.pop("host"),
        "PORT": _DSN.pop("port", ""),
        "TEST": {"NAME": os.environ.get("SHOP_TEST_NAME")},
        **_VARIED,
        "OPTIONS": {**_DSN, "application_name": "orm", **_VARIED.get("OPTIONS", {})},
    }
}
if "ENGINE" in _VARIED:
    DATABASES["default"]["OPTIONS"] = {}
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "tenure.integrations.django",
    "orders",
    "mails",
    *json.loads(os.environ.get("SHOP_APPS", "[]")),
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "shop.urls"
STATIC_URL = "static/"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGGING_CONFIG = None
TENURE = {}

globals().update(json.loads(os.environ.get("SHOP_SETTINGS", "{}")))
