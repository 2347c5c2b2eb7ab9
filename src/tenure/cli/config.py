"""`tenure config`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import click

from tenure.cli import options, output
from tenure.cli.command_context import load_user_app
from tenure.cli.database_choice import prepare_environment
from tenure.cli.output import Column
from tenure.model.errors import ConfigError
from tenure.settings import Settings
from tenure.store.dsn import read_dsn, without_password

LIST = (Column("SETTING"), Column("VALUE", flexible=True), Column("FROM", flexible=True))


@dataclass(frozen=True, slots=True)
class ShownSetting:
    name: str
    value: Any
    source: str


@click.command()
@options.database
@options.app
@options.as_json
def config(dsn: str | None, schema: str | None, app: str | None, as_json: bool) -> None:
    """Show every setting, its value, and where that came from.

    The first source that sets it wins: flags, the code of --app, TENURE_..., tenure.toml, [tool.tenure] in pyproject.toml, the
    default. The file is --config, TENURE_CONFIG, or found in this directory or one above.
    """
    found = [*_settings(app, {"dsn": dsn, "schema": schema})]
    if as_json:
        output.print_json({"settings": found})
    else:
        output.show_table(LIST, [(one.name, "not set" if one.value is None else one.value, one.source) for one in found])


def _settings(app: str | None, flags: dict[str, Any]) -> list[ShownSetting]:
    environ = dict(os.environ)  # a copy: exporting TENURE_DSN for the app's code would hide where the value came from
    prepare_environment(flags["dsn"])
    in_code = [] if app is None else [(f"the code of {app}", load_user_app(app).given)]
    named = ((f"--{name}", {name: value}) for name, value in flags.items())
    used, sources = Settings.explained([*in_code, *named], environ=environ)
    return [_setting(name, used, source) for name, source in sources.items()]


def _setting(name: str, used: Settings, source: str) -> ShownSetting:
    if name.startswith("workers."):
        _, pool, inner = name.split(".", 2)
        return ShownSetting(name, _listed(getattr(used.pools[pool], inner)), source)
    if name.startswith("workers_"):
        inner = name.removeprefix("workers_")
        return ShownSetting(f"workers.{inner}", _listed(getattr(used.workers, inner)), source)
    value = getattr(used, name)
    if name == "routes":
        shown = {route.pattern: {"queue": route.queue, "priority": route.priority} for route in value}
        return ShownSetting(name, shown or None, source)
    return ShownSetting(name, _shown(value) if name.endswith("dsn") and value else _listed(value), source)


def _shown(dsn: str) -> str:
    try:
        read_dsn(dsn)
    except ConfigError:
        return "*** (cannot be read)"  # so its password cannot be found and hidden
    return without_password(dsn)


def _listed(value: Any) -> Any:
    return (", ".join(value) or None) if isinstance(value, tuple) else value
