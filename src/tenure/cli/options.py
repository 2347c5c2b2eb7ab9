"""Options that several commands share."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tenure.setting_sources import FILE_VARIABLE, config_files

if TYPE_CHECKING:
    from tenure.manager.spec import ChildSpec

Command = TypeVar("Command", bound=Callable[..., Any])

APP_DEFAULT = "Default: `app` of tenure.toml, or app:app."


def _named_file(ctx: click.Context, _: click.Parameter, given: str | None) -> None:
    """Sets the variable, so that every process that is started reads the same file."""
    if given is None:
        return
    config_files(Path.cwd(), {}, named=given)  # so that an error in it names --config, not the variable
    before = os.environ.get(FILE_VARIABLE)
    os.environ[FILE_VARIABLE] = os.path.abspath(Path(given).expanduser())  # noqa: PTH100 - a link stays a link

    def restore() -> None:
        if before is None:
            os.environ.pop(FILE_VARIABLE, None)
        else:
            os.environ[FILE_VARIABLE] = before

    ctx.call_on_close(restore)


def config_file(command: Command) -> Command:
    help_ = "Settings file; default: TENURE_CONFIG, or tenure.toml in this directory or one above."
    read_first: dict[str, Any] = {"is_eager": True, "expose_value": False, "callback": _named_file}
    return click.option("--config", metavar="FILE", help=help_, **read_first)(command)


def database(command: Command) -> Command:
    command = click.option("--schema", help="Schema that holds Tenure's tables (tenure).")(config_file(command))
    return click.option("--dsn", help="The database; default: TENURE_DSN, DATABASE_URL, tenure.toml.")(command)


def app(command: Command) -> Command:
    """For commands that do not need an app."""
    return click.option("--app", help="Your Tenure object as module:attribute, whose code may name the database.")(command)


def svg(command: Command) -> Command:
    """For commands that draw something."""
    file = click.File("w", encoding="utf-8", lazy=True)
    return click.option("--svg", type=file, metavar="FILE", help="Write a drawing as SVG into this file; `-`: to stdout.")(
        command
    )


def as_json(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def by(command: Command) -> Command:
    help_ = "Recorded as the author; default: user@host."
    return click.option("--by", default=whoami, show_default=False, metavar="NAME", help=help_)(command)


def whoami() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # an account without a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def serving(command: Command) -> Command:
    """The options of workers; `child_spec` takes all of them except the number of processes, the health file and the port."""
    for option in (
        click.option("--embedded", is_flag=True, help="If no database is set, start an embedded one (not for production)."),
        click.option("--name", metavar="NAME", help="Name of this worker in `tenure workers`, events and logs (host:pid)."),
        click.option("--concurrency", "-c", type=click.IntRange(1), help="Jobs at a time in each process (10)."),
        click.option("--health-file", help="A file that the supervisor touches while it is alive, for `tenure health`."),
        click.option("--metrics-port", metavar="[HOST:]PORT", help="Serve metrics for Prometheus here (host: 127.0.0.1)."),
        click.option("--processes", "-p", type=click.IntRange(1), help="Worker processes (2)."),
        click.option(
            "--capabilities", help="Capabilities of this machine, separated by commas; it runs no jobs that need others."
        ),
        click.option("--queues", "-q", help="Queues to serve, separated by commas; default: those of the app's jobs."),
        click.option("--app", help=f"Your Tenure object as module:attribute. {APP_DEFAULT}"),
    ):
        command = option(command)
    return command


def which_app(given: str | None) -> tuple[str, Path]:
    """The app, and the directory of its module: that of the settings file if the file names the app."""
    if given is not None:
        return given, Path.cwd()
    from tenure.settings import Settings  # noqa: PLC0415

    files = [] if os.environ.get("TENURE_APP") else config_files(Path.cwd(), os.environ)
    folder = next((file.folder for file in reversed(files) if "app" in file.table), Path.cwd())
    return Settings.load(embedded=False).app, folder


def child_spec(
    flags: dict[str, Any],
    *,
    app: str | None = None,
    queues: str | None = None,
    capabilities: str | None = None,
    concurrency: int | None = None,
    name: str | None = None,
) -> ChildSpec:
    from tenure.manager.spec import ChildSpec  # noqa: PLC0415 - imports the driver
    from tenure.store.workers import check_name  # noqa: PLC0415

    path, folder = which_app(app)
    return ChildSpec(
        app=path,
        folder=str(folder),
        flags={name: value for name, value in flags.items() if value is not None},
        queues=_listed(queues) or None,
        capabilities=_listed(capabilities),
        concurrency=concurrency,
        name=None if name is None else check_name(name),
    )


def _listed(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]
