"""Which database a command uses: the one that is set, or an embedded one where that is allowed."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import click

from tenure.cli import output
from tenure.embedded.finding import HOME_NAME, RunningServer, home_of_sockets, known_home, running_server
from tenure.manager.ask import AppFacts, ask_app
from tenure.model.errors import ConfigError
from tenure.setting_sources import config_files
from tenure.settings import NO_DSN, Settings
from tenure.store.dsn import sockets_of

log = logging.getLogger("tenure")

VARIABLE = "TENURE_DSN"
ONLY_ON_TERMINAL = (
    "{}\n`tenure up` and `tenure worker` use an embedded PostgreSQL that is running. They start one only at a terminal, where "
    "you see it; elsewhere pass --embedded (for development, not for production)."
)


@dataclass(frozen=True, slots=True)
class OpenedDatabase:
    settings: Settings
    home: Path | None = None
    """The directory of the embedded server that is used."""
    facts: AppFacts | None = None
    """The app's jobs and database, if the app was loaded."""


def on_terminal() -> bool:
    return any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def export(settings: Settings, *, over: bool = False) -> None:
    """Sets TENURE_DSN, so that code imported later, in this process and its children, finds the same database."""
    if settings.dsn and (over or not os.environ.get(VARIABLE)):
        os.environ[VARIABLE] = settings.dsn


def project_home() -> Path:
    """The directory of this project's embedded server: an existing one, else beside the settings file, else here."""
    working = Path.cwd()
    files = config_files(working, os.environ)
    beside = files[-1].folder if files and working.is_relative_to(files[-1].folder) else working
    found = known_home(working)
    return found if found is not None else beside / HOME_NAME


@contextmanager
def embedded_database(schema: str | None) -> Iterator[OpenedDatabase]:
    """The embedded server of this project while it is needed, shared with other processes that use it."""
    from tenure.embedded import EmbeddedServer  # noqa: PLC0415 - not for the workers of another server

    home = project_home()
    if not EmbeddedServer(home).running and not output.wants_json():
        output.note(f"starting an embedded PostgreSQL in {home} (the first start takes some seconds)")
    with EmbeddedServer(home) as server:
        yield OpenedDatabase(Settings.load(dsn=server.dsn, schema=schema), home)


@contextmanager
def configured_or_embedded(dsn: str | None, schema: str | None) -> Iterator[Settings]:
    """For commands that do not load an app."""
    settings = Settings.load(dsn=dsn, schema=schema)
    if settings.dsn is not None:
        yield settings
        return
    with embedded_database(schema) as opened:
        click.echo(f"no database is set: using an embedded PostgreSQL in {opened.home} (not for production)", err=True)
        yield opened.settings


@contextmanager
def worker_database(
    app: str, folder: str, *, dsn: str | None, schema: str | None, embedded: bool, load_app: bool = True
) -> Iterator[OpenedDatabase]:
    """The database for workers of this app, exported as TENURE_DSN before the app is loaded in any process.

    The first of these that is set: `dsn`, the app's code, the settings, an embedded server of this project. If that server is
    not running, it is started only if `embedded` allows it. `load_app`: load the app even if the settings name a database.
    """
    settings = Settings.load(dsn=dsn, schema=schema, embedded=False)
    export(settings, over=dsn is not None)
    if settings.dsn is None:
        with _found_or_embedded(app, folder, schema, embedded=embedded) as opened:
            yield opened
        return
    with _restarted(settings) if embedded else nullcontext(None) as home:
        facts = ask_app(app, folder) if load_app else None
        if facts is not None and facts.dsn is not None and dsn is None:
            settings = Settings.load(dsn=facts.dsn, schema=schema)
        yield OpenedDatabase(settings, home, facts)


@contextmanager
def _restarted(settings: Settings) -> Iterator[Path | None]:
    """A DSN copied from an earlier run may name this project's embedded server, which is not running yet."""
    sockets = sockets_of(settings.dsn or "")
    home = home_of_sockets(sockets, Path.cwd()) if sockets else None
    if home is None:
        yield None
        return
    from tenure.embedded import EmbeddedServer  # noqa: PLC0415 - not for the workers of another server

    with EmbeddedServer(home):
        yield home


@contextmanager
def _found_or_embedded(app: str, folder: str, schema: str | None, *, embedded: bool) -> Iterator[OpenedDatabase]:
    """The code may name a database. It may also need TENURE_DSN to be imported; then it is loaded again with one."""
    try:
        facts, problem = ask_app(app, folder), None
    except ConfigError as error:
        facts, problem = None, error
    if facts is not None and facts.dsn is not None:
        settings = Settings.load(dsn=facts.dsn, schema=schema)
        export(settings)
        yield OpenedDatabase(settings, facts=facts)
        return
    running = running_server(Path.cwd())
    if running is not None and not (embedded and running.home.name == HOME_NAME):
        server = _use_running(running, schema)
    elif embedded:
        server = embedded_database(schema)
    else:
        raise ConfigError(ONLY_ON_TERMINAL.format(NO_DSN if problem is None else f"no database is set, and {problem}"))
    with server as opened:
        export(opened.settings)
        yield OpenedDatabase(opened.settings, opened.home, facts or ask_app(app, folder))


@contextmanager
def _use_running(running: RunningServer, schema: str | None) -> Iterator[OpenedDatabase]:
    """A server that another process runs, such as `tenure dev` or a demo. It is not kept alive: it stops with that process, so
    that an unattended service does not keep it running."""
    log.info("no database is set: using the embedded PostgreSQL of this project", extra={"home": str(running.home)})
    yield OpenedDatabase(Settings.load(dsn=running.dsn, schema=schema), running.home)


def prepare_environment(dsn: str | None) -> Callable[[], None]:
    """Sets TENURE_DSN for code that the command may import. Returns a function that prints which embedded server is used."""
    settings, sources = Settings.explained([("--dsn", {"dsn": dsn})])
    export(settings, over=dsn is not None)
    if not sources["dsn"].startswith("the embedded server") or output.wants_json():
        return lambda: None
    return lambda: output.note(f"no database is set: using {sources['dsn']}")
