"""Options that several commands share."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from tenure.manager.spec import ChildSpec

Command = TypeVar("Command", bound=Callable[..., Any])


def database(command: Command) -> Command:
    command = click.option("--schema", help="Schema that holds Tenure's tables (tenure).")(command)
    return click.option("--dsn", help="PostgreSQL to use; else TENURE_DSN, DATABASE_URL, tenure.toml.")(command)


def app(command: Command) -> Command:
    """For commands that can do without one."""
    return click.option("--app", help="Your Tenure object, as module:attribute: its code may name the database.")(command)


def as_json(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document, for programs.")(command)


def by(command: Command) -> Command:
    told = "Who decides it, for the record; else you: user@host."
    return click.option("--by", default=whoami, show_default=False, metavar="NAME", help=told)(command)


def whoami() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # an account without a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def serving(command: Command) -> Command:
    """What a worker serves and how; `child_spec` takes all of it but the number of processes and the health file."""
    for option in (
        click.option("--concurrency", "-c", type=click.IntRange(1), help="Jobs at a time in each process (10)."),
        click.option("--health-file", help="A file that is touched while all is well, for `tenure health`."),
        click.option("--processes", "-p", type=click.IntRange(1), help="Worker processes (2)."),
        click.option("--capabilities", help="What this machine can do, by commas; jobs that need more are left to others."),
        click.option("--queues", "-q", help="Queues to serve, by commas; else those of the app's jobs."),
        click.option("--app", default="app:app", show_default=True, help="Your Tenure object, as module:attribute."),
    ):
        command = option(command)
    return command


def child_spec(
    flags: dict[str, Any], *, app: str, queues: str | None = None, capabilities: str | None = None, concurrency: int | None = None
) -> ChildSpec:
    from tenure.manager.spec import ChildSpec  # noqa: PLC0415 - brings the driver

    return ChildSpec(
        app=app,
        folder=os.getcwd(),  # noqa: PTH109 - the import path wants a plain string
        flags={name: value for name, value in flags.items() if value is not None},
        queues=_listed(queues) or None,
        capabilities=_listed(capabilities),
        concurrency=concurrency,
    )


def _listed(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]
