"""How a command asks about jobs: which database, which app, which job is meant."""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from collections.abc import Callable, Coroutine
from contextlib import redirect_stdout
from pathlib import Path
from string import hexdigits
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec
from uuid import UUID

import click

from tenure.app import Tenure
from tenure.cli import codes, options
from tenure.cli.databases import provide
from tenure.client.handle import Handle
from tenure.client.job import Job
from tenure.client.status import JobStatus
from tenure.model.errors import ConfigError, JobNotFound, TenureError

if TYPE_CHECKING:
    from tenure.client.client import Client

P = ParamSpec("P")

SHORTEST_PREFIX = 8
"""Characters of an id that may stand for all of it. So many say in which minute the job came in."""

DIGITS = 32  # of a whole id


class NoSuchJob(click.ClickException):
    exit_code = codes.NOT_FOUND


class Asker:
    """What a command asks by."""

    def __init__(self, app: Tenure, *, as_json: bool) -> None:
        self.app = app
        self.as_json = as_json

    @property
    def client(self) -> Client:
        return self.app.client()

    async def find(self, given: str) -> JobStatus:
        """By its id or the first characters of it."""
        try:
            whole = UUID(given)
        except ValueError:
            return await self._begins(given)
        job = await self.client.find(whole)
        if job is None:
            raise JobNotFound(whole)
        return job

    async def find_all(self, given: tuple[str, ...]) -> list[JobStatus]:
        """Before anything is done about any of them."""
        return [await self.find(one) for one in given]

    def handle(self, job: JobStatus) -> Handle[Any]:
        return self.client.handle(job.id, job.kind)

    def job(self, kind: str) -> Job[Any, Any, Any, Any]:
        return self.app.jobs[kind]

    async def _begins(self, given: str) -> JobStatus:
        first, beyond = _span(given)
        found: list[JobStatus] = []
        after: str | None = None if beyond >= 1 << 128 else str(UUID(int=beyond))
        while len(found) < 2:
            page = await self.client.list(limit=2, after=after)
            found += [job for job in page.jobs if job.id.int >= first]
            after = page.next
            if after is None or UUID(after).int < first:
                break
        if not found:
            raise NoSuchJob(f"no job's id begins with {given!r}: it was deleted, or its retention is over")
        if len(found) > 1:
            raise click.UsageError(f"several jobs begin with {given!r}, such as {found[0].id}: give more of the id")
        return found[0]


def _span(given: str) -> tuple[int, int]:
    """The first id that begins so, and the first one beyond them."""
    digits = given.replace("-", "")
    if not (set(digits) <= set(hexdigits) and SHORTEST_PREFIX <= len(digits) < DIGITS):
        raise click.UsageError(f"{given!r} is no job id: give it whole, or its first {SHORTEST_PREFIX} characters or more")
    number, missing = int(digits, 16), 4 * (DIGITS - len(digits))
    return number << missing, (number + 1) << missing


def asks(command: Callable[Concatenate[Asker, P], Coroutine[Any, Any, int | None]]) -> Callable[..., int | None]:
    """Gives the command `--dsn --schema --app --json` and, with these, what it asks by. What it returns is the exit code."""

    @options.as_json
    @options.app
    @options.database
    def run(*args: P.args, **given: P.kwargs) -> int | None:
        flags: dict[str, Any] = {name: given.pop(name) for name in ("dsn", "schema", "app", "as_json")}
        asker = Asker(open_app(flags["app"], flags["dsn"], flags["schema"]), as_json=flags["as_json"])
        return answer(command(asker, *args, **given))

    _adopt(run, command)
    return run


def _adopt(run: Callable[..., Any], command: Callable[..., Any]) -> None:
    """Name, help and options of the command; the shared options come last."""
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__click_params__ += getattr(command, "__click_params__", [])  # type: ignore[attr-defined]


def answer(asking: Coroutine[Any, Any, int | None]) -> int | None:
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # that a listener ends in the middle of a word is no news
    try:
        return asyncio.run(asking)
    except ConfigError as error:
        # The settings were fine: it is what was asked for.
        raise click.UsageError(str(error)) from None


def open_app(path: str | None, dsn: str | None, schema: str | None, folder: Path | None = None) -> Tenure:
    """Raises unless a database is set: by the flags, by the app's code, or where settings come from."""
    say_embedded = provide(dsn)
    app = Tenure() if path is None else load(path, folder)
    if app.given.get("dsn") is None:
        say_embedded()
    app.configure(dsn=dsn, schema=schema)
    app.settings.database  # noqa: B018 - told now, as a matter of settings
    return app


def load(path: str, folder: Path | None = None) -> Tenure:
    """The user's app. What its modules print is no part of our answer."""
    from tenure.manager.loading import load_app  # noqa: PLC0415

    try:
        with redirect_stdout(sys.stderr):
            return load_app(path, str(folder or Path.cwd()))
    except TenureError:
        raise
    except (Exception, SystemExit) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        told = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
        raise ConfigError(f"--app {path} cannot be loaded: {told} ({frame.filename}, line {frame.lineno})") from error
