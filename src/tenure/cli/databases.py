"""Which database a command works on: the one that is set, or an embedded one where that is wanted."""

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
from tenure.embedded import EmbeddedServer
from tenure.embedded.finding import HOME_NAME, RunningServer, home_of_sockets, known_home, running_server
from tenure.manager.ask import AppFacts, ask_app
from tenure.model.errors import ConfigError
from tenure.setting_sources import config_files
from tenure.settings import NO_DSN, Settings
from tenure.store.dsn import sockets_of

log = logging.getLogger("tenure")

VARIABLE = "TENURE_DSN"
ONLY_AT_A_TERMINAL = (
    "{}\n`tenure up` and `tenure worker` use an embedded PostgreSQL that is running, but start one only at a terminal, where it "
    "is seen; anywhere else give --embedded (for development, not for production)."
)


@dataclass(frozen=True, slots=True)
class Opened:
    settings: Settings
    home: Path | None = None
    """Of the embedded server that is used."""
    facts: AppFacts | None = None
    """What the app's code says, if it was asked."""


def at_a_terminal() -> bool:
    return any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def export(settings: Settings, *, over: bool = False) -> None:
    """Lets code that is imported from here on, in this process and its children, find the same database."""
    if settings.dsn and (over or not os.environ.get(VARIABLE)):
        os.environ[VARIABLE] = settings.dsn


def project_home() -> Path:
    """The folder of this project's embedded server: where there is one, beside the settings, or here."""
    working = Path.cwd()
    files = config_files(working, os.environ)
    beside = files[-1].folder if files and working.is_relative_to(files[-1].folder) else working
    found = known_home(working)
    return found if found is not None else beside / HOME_NAME


@contextmanager
def embedded_database(schema: str | None) -> Iterator[Opened]:
    """A server of this project for as long as it is needed, shared with those that hold it already."""
    home = project_home()
    if not EmbeddedServer(home).running and not output.wants_json():
        output.say(f"starting an embedded PostgreSQL in {home} (the first time this takes some seconds)")
    with EmbeddedServer(home) as server:
        yield Opened(Settings.load(dsn=server.dsn, schema=schema), home)


@contextmanager
def set_or_embedded(dsn: str | None, schema: str | None) -> Iterator[Settings]:
    """For commands that need no app."""
    settings = Settings.load(dsn=dsn, schema=schema)
    if settings.dsn is not None:
        yield settings
        return
    with embedded_database(schema) as opened:
        click.echo(f"no database is set: using an embedded PostgreSQL in {opened.home} (not for production)", err=True)
        yield opened.settings


@contextmanager
def database_of(
    app: str, folder: str, *, dsn: str | None, schema: str | None, embedded: bool, ask: bool = True
) -> Iterator[Opened]:
    """The database of workers of this app, exported as TENURE_DSN before the app is loaded in any process.

    What counts: `dsn`, the app's code, the settings, and an embedded server of this project. One that does not run is started
    only where `embedded` allows that. `ask` also asks the app where the settings alone would do.
    """
    settings = Settings.load(dsn=dsn, schema=schema, embedded=False)
    export(settings, over=dsn is not None)
    if settings.dsn is None:
        with _found_or_embedded(app, folder, schema, embedded=embedded) as opened:
            yield opened
        return
    with _restarted(settings) if embedded else nullcontext(None) as home:
        facts = ask_app(app, folder) if ask else None
        if facts is not None and facts.dsn is not None and dsn is None:
            settings = Settings.load(dsn=facts.dsn, schema=schema)
        yield Opened(settings, home, facts)


@contextmanager
def _restarted(settings: Settings) -> Iterator[Path | None]:
    """A DSN that was copied from an earlier run may name this project's own server, which does not run yet."""
    sockets = sockets_of(settings.dsn or "")
    home = home_of_sockets(sockets, Path.cwd()) if sockets else None
    if home is None:
        yield None
        return
    with EmbeddedServer(home):
        yield home


@contextmanager
def _found_or_embedded(app: str, folder: str, schema: str | None, *, embedded: bool) -> Iterator[Opened]:
    """The code may name a database; or need TENURE_DSN to be imported at all, and then it is asked again with one."""
    try:
        facts, problem = ask_app(app, folder), None
    except ConfigError as error:
        facts, problem = None, error
    if facts is not None and facts.dsn is not None:
        settings = Settings.load(dsn=facts.dsn, schema=schema)
        export(settings)
        yield Opened(settings, facts=facts)
        return
    running = running_server(Path.cwd())
    if running is not None and not (embedded and running.home.name == HOME_NAME):
        server = _as_it_is(running, schema)
    elif embedded:
        server = embedded_database(schema)
    else:
        raise ConfigError(ONLY_AT_A_TERMINAL.format(NO_DSN if problem is None else f"no database is set, and {problem}"))
    with server as opened:
        export(opened.settings)
        yield Opened(opened.settings, opened.home, facts or ask_app(app, folder))


@contextmanager
def _as_it_is(running: RunningServer, schema: str | None) -> Iterator[Opened]:
    """A server that another process keeps, such as `tenure dev` or a demo. It is not held: it ends when that process does, and
    never stays behind for a service that nobody watches."""
    log.info("no database is set: using the embedded PostgreSQL of this project", extra={"home": str(running.home)})
    yield Opened(Settings.load(dsn=running.dsn, schema=schema), running.home)


def provide(dsn: str | None) -> Callable[[], None]:
    """For a command that asks: sets TENURE_DSN for code that it may import. Returns what prints the embedded server."""
    settings, sources = Settings.explained([("--dsn", {"dsn": dsn})])
    export(settings, over=dsn is not None)
    if not sources["dsn"].startswith("the embedded server") or output.wants_json():
        return lambda: None
    return lambda: output.say(f"no database is set: using {sources['dsn']}")
