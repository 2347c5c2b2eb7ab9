"""Settings of an app as environment variables, for `manage.py tenure ...` and `flask tenure ...`.

These commands become `tenure ...`, whose supervisor does not load the project: what is not in the environment, it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tenure.setting_sources import PREFIX


def exported(given: Mapping[str, Any]) -> dict[str, str]:
    """The variables by their names. `given`: `app.given`."""
    return {f"{PREFIX}{name.upper()}": _text(value) for name, value in given.items() if value is not None}


def _text(value: Any) -> str:
    """As the readers of settings understand it."""
    if isinstance(value, Mapping):  # routes
        return json.dumps(dict(value))
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value.total_seconds() if isinstance(value, timedelta) else value)
