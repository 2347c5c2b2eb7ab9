"""What commands share: the app, its client, and whether to print JSON."""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from collections.abc import Callable, Coroutine
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click

from tenure.app import Tenure
from tenure.cli import options
from tenure.cli.database_choice import prepare_environment
from tenure.client.handle import Handle
from tenure.client.job import Job
from tenure.client.job_lookup import find_job
from tenure.client.status import JobStatus
from tenure.model.errors import ConfigError, TenureError

if TYPE_CHECKING:
    from tenure.client.client import Client

P = ParamSpec("P")


class CommandContext:
    """The first argument of every command that uses `with_context`."""

    def __init__(self, app: Tenure, *, as_json: bool) -> None:
        self.app = app
        self.as_json = as_json

    @property
    def client(self) -> Client:
        return self.app.client()

    async def find(self, text: str) -> JobStatus:
        """By its id or a unique prefix of it."""
        return await find_job(self.client, text)

    async def find_all(self, texts: tuple[str, ...]) -> list[JobStatus]:
        """Finds all of them first, so that an unknown id stops the command before it changes anything."""
        return [await self.find(text) for text in texts]

    def handle(self, job: JobStatus) -> Handle[Any]:
        return self.client.handle(job.id, job.kind)

    def job(self, kind: str) -> Job[Any, Any, Any, Any]:
        """Raises `UnknownKind`."""
        return self.app.jobs[kind]


def with_context(command: Callable[Concatenate[CommandContext, P], Coroutine[Any, Any, int | None]]) -> Callable[..., int | None]:
    """Adds `--dsn --schema --app --json` to a command and passes it a context. The command returns its exit code."""

    @options.as_json
    @options.app
    @options.database
    def run(*args: P.args, **given: P.kwargs) -> int | None:
        flags: dict[str, Any] = {name: given.pop(name) for name in ("dsn", "schema", "app", "as_json")}
        context = CommandContext(open_app(flags["app"], flags["dsn"], flags["schema"]), as_json=flags["as_json"])
        return run_async(command(context, *args, **given))

    _copy_metadata(run, command)
    return run


def _copy_metadata(run: Callable[..., Any], command: Callable[..., Any]) -> None:
    """Name, help and options of the command; the shared options come last."""
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__click_params__ += getattr(command, "__click_params__", [])  # type: ignore[attr-defined]


def run_async(command: Coroutine[Any, Any, int | None]) -> int | None:
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns when a listener is closed while it reads
    try:
        return asyncio.run(command)
    except ConfigError as error:
        # The settings were checked before, so the arguments are wrong.
        raise click.UsageError(str(error)) from None


def open_app(path: str | None, dsn: str | None, schema: str | None, folder: Path | None = None) -> Tenure:
    """Raises unless a database is set: by flags, by the app's code, or by the settings."""
    note_embedded = prepare_environment(dsn)
    app = Tenure() if path is None else load_user_app(path, folder)
    if app.given.get("dsn") is None:
        note_embedded()
    app.configure(dsn=dsn, schema=schema)
    app.settings.database  # noqa: B018 - raises here, so that a missing database is reported as wrong settings
    return app


def load_user_app(path: str, folder: Path | None = None) -> Tenure:
    """What the app's modules print goes to stderr: stdout is for the command's result."""
    from tenure.manager.loading import load_app  # noqa: PLC0415

    try:
        with redirect_stdout(sys.stderr):
            return load_app(path, str(folder or Path.cwd()))
    except TenureError:
        raise
    except (Exception, SystemExit) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        reason = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
        raise ConfigError(f"--app {path} cannot be loaded: {reason} ({frame.filename}, line {frame.lineno})") from error
