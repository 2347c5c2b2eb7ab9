"""Asks an app, in a process of its own, which database its code names: no user code runs in the asking process."""

from __future__ import annotations

import json
import subprocess
import sys

from tenure.manager.loading import load_app
from tenure.model.errors import ConfigError, TenureError


def dsn_in_code(app: str, folder: str) -> str | None:
    """None when the code names none; raises when the app cannot be loaded."""
    command = [sys.executable, "-m", "tenure.manager.ask", app, folder]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        answer = json.loads(asked.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        raise ConfigError(f"--app {app} cannot be loaded:\n{asked.stderr.strip()}") from None
    if "problem" in answer:
        raise ConfigError(answer["problem"])
    dsn: str | None = answer["dsn"]
    return dsn


if __name__ == "__main__":
    try:
        print(json.dumps({"dsn": load_app(sys.argv[1], sys.argv[2]).given["dsn"]}))  # noqa: T201 - read by the asking process
    except TenureError as error:
        print(json.dumps({"problem": str(error)}))  # noqa: T201
