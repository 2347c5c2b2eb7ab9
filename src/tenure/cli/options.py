"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tenure.manager.spec import ChildSpec

Command = TypeVar("Command", bound=Callable[..., Any])


def database(command: Command) -> Command:
    command = click.option("--schema", help="Schema that holds Tenure's tables (tenure).")(command)
    return click.option("--dsn", help="PostgreSQL to use; else TENURE_DSN, DATABASE_URL, tenure.toml.")(command)


def serving(command: Command) -> Command:
    """What a worker serves and how; `child_spec` takes all of it but the number of processes."""
    for option in (
        click.option("--concurrency", "-c", type=click.IntRange(1), help="Jobs at a time in each process (10)."),
        click.option("--processes", "-p", type=click.IntRange(1), help="Worker processes (1)."),
        click.option("--capabilities", help="What this machine can do, by commas; jobs that need more are left to others."),
        click.option("--queues", "-q", help="Queues to serve, by commas; else those of the app's jobs."),
        click.option("--app", default="app:app", show_default=True, help="Your Tenure object, as module:attribute."),
    ):
        command = option(command)
    return command


def child_spec(
    flags: dict[str, Any], *, app: str, queues: str | None = None, capabilities: str | None = None, concurrency: int | None = None
) -> ChildSpec:
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
