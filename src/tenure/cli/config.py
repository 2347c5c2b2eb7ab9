"""`tenure config`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import click

from tenure.cli import options, output
from tenure.cli.asking import load
from tenure.cli.output import Column
from tenure.settings import Settings

LIST = (Column("SETTING"), Column("VALUE", flexible=True), Column("FROM"))

HIDDEN = "***"
_IN_URL = re.compile(r"(://[^:@/?]*):.*@", re.DOTALL)
_IN_QUERY = re.compile(r"([?&](?:ssl)?password=)[^&]*")
_IN_WORDS = re.compile(r"(\b(?:ssl)?password\s*=\s*)('(?:\\.|[^'\\])*'|(?:\\.|\S)+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: Any
    source: str


@click.command()
@options.database
@options.app
@options.as_json
def config(dsn: str | None, schema: str | None, app: str | None, as_json: bool) -> None:
    """Every setting, its value, and where that came from.

    What counts, the first that says something: flags, the code of --app, TENURE_..., tenure.toml, [tool.tenure] in
    pyproject.toml, the default.
    """
    found = [*_settings(app, {"dsn": dsn, "schema": schema})]
    if as_json:
        output.emit({"settings": found})
    else:
        output.show_table(LIST, [(one.name, "not set" if one.value is None else one.value, one.source) for one in found])


def _settings(app: str | None, flags: dict[str, Any]) -> list[Setting]:
    said = [] if app is None else [(f"the code of {app}", load(app).given)]
    used, sources = Settings.explained([*said, *((f"--{name}", {name: value}) for name, value in flags.items())])
    return [_setting(name, used, source) for name, source in sources.items()]


def _setting(name: str, used: Settings, source: str) -> Setting:
    if name.startswith("workers."):
        _, pool, inner = name.split(".", 2)
        return Setting(name, _listed(getattr(used.pools[pool], inner)), source)
    if name.startswith("workers_"):
        inner = name.removeprefix("workers_")
        return Setting(f"workers.{inner}", _listed(getattr(used.workers, inner)), source)
    value = getattr(used, name)
    return Setting(name, without_password(value) if name.endswith("dsn") and value else value, source)


def _listed(value: Any) -> Any:
    return (", ".join(value) or None) if isinstance(value, tuple) else value


def without_password(dsn: str) -> str:
    """What may be shown to whoever looks over a shoulder."""
    if "://" in dsn:
        return _IN_QUERY.sub(rf"\g<1>{HIDDEN}", _IN_URL.sub(rf"\1:{HIDDEN}@", dsn))
    return _IN_WORDS.sub(rf"\g<1>{HIDDEN}", dsn)
