"""`manage.py tenure ...`: Tenure's command line, for the jobs and the database of this project."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import REMAINDER
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tenure.integrations.django.app import app
from tenure.integrations.exported_settings import exported
from tenure.model.errors import ConfigError
from tenure.setting_sources import PREFIX

APP = "tenure.integrations.django.worker:app"
DJANGO_FLAGS = ("--settings", "--pythonpath")
"""Read by `manage.py` before this command runs."""
WRONG_SETTINGS = 3
"""The exit code of `tenure` for them."""


class Command(BaseCommand):
    help = "Tenure's command line: worker, up, dev, enqueue, jobs, schedules, doctor and so on. See `manage.py tenure --help`."
    requires_system_checks: Sequence[str] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("arguments", nargs=REMAINDER)

    def run_from_argv(self, argv: list[str]) -> None:
        """Becomes the other command, so that signals and exit codes are its own. The process that supervises workers must not
        run code of the project, which is loaded here."""
        try:
            command, environment = self._command(list(_without_django_flags(argv[2:])))
        except CommandError as error:
            # As Django does for other commands, without a traceback.
            self.stderr.write(f"{type(error).__name__}: {error}")
            sys.exit(error.returncode)
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(command[0], command, environment)  # noqa: S606 - no shell

    def handle(self, *_: Any, arguments: Sequence[str], **__: Any) -> None:
        """For `call_command("tenure", "migrate")`."""
        command, environment = self._command(list(arguments))
        code = subprocess.run(command, env=environment, check=False).returncode
        if code:
            raise CommandError(f"tenure {' '.join(arguments)} failed", returncode=code)

    def _command(self, arguments: list[str]) -> tuple[list[str], dict[str, str]]:
        try:
            environment = {**os.environ, **project_environment()}
        except ConfigError as error:
            raise CommandError(str(error), returncode=WRONG_SETTINGS) from None
        return [sys.executable, "-m", "tenure", *arguments], environment


def project_environment() -> dict[str, str]:
    """Settings for the commands that do not load the project, and for processes that do."""
    app.follow_django()
    path = os.pathsep.join(filter(None, [sys.path[0], os.environ.get("PYTHONPATH")]))
    return {**exported(app.given), f"{PREFIX}APP": APP, "PYTHONPATH": path}


def _without_django_flags(arguments: Sequence[str]) -> Iterator[str]:
    words = iter(arguments)
    for word in words:
        if word in DJANGO_FLAGS:
            next(words, None)
        elif not word.startswith(tuple(f"{flag}=" for flag in DJANGO_FLAGS)):
            yield word
