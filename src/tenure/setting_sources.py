"""Sources of settings: a file that is given or found in the working directory or above, and the environment."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tenure.model.errors import ConfigError

OWN_FILE = "tenure.toml"
PROJECT_FILE = "pyproject.toml"
FILE_VARIABLE = "TENURE_CONFIG"
PATHS = ("workers_health_file",)
"""Settings that are paths. A relative path is relative to the file that contains it."""

PREFIX = "TENURE_"
NOT_SETTINGS = ("config", "pg_bin", "test_", "demo_", "chaos_", "interleavings", "property_", "planted")
"""Prefixes of Tenure's other variables."""
LIKENESS = 0.65
"""With a lower value, unrelated variables would be reported, such as those of a Kubernetes service called `tenure`."""

Found = dict[str, tuple[Any, str]]
"""By the name of a setting: its value and its source."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    path: Path
    label: str
    """Shown as the source."""
    table: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        return self.path.parent

    def settings(self, working: Path) -> Found:
        found = _flat(self.table, self.label)
        for name in PATHS:
            if name in found and self.folder != working and isinstance(found[name][0], str):
                found[name] = str(self.folder / found[name][0]), self.label
        return found


def config_files(folder: Path, environ: Mapping[str, str], named: str | Path | None = None) -> list[ConfigFile]:
    """The files to read, in rising precedence: the given one, or those of the nearest folder that contains any."""
    folder = folder.absolute()
    if named:
        return [_named(Path(named), "--config")]
    if environ.get(FILE_VARIABLE):
        return [_named(Path(environ[FILE_VARIABLE]), FILE_VARIABLE)]
    for candidate in (folder, *folder.parents):
        if found := list(_files_in(candidate, folder)):
            return found
    return []


def from_environment(environ: Mapping[str, str], names: Collection[str], *, have_dsn: bool) -> Found:
    found: Found = {}
    if not have_dsn and any(environ.get(name) for name in ("PGHOST", "PGDATABASE", "PGSERVICE", "PGHOSTADDR")):
        found["dsn"] = ("", "PG* variables")  # libpq reads them itself
    if environ.get("DATABASE_URL"):
        found["dsn"] = (environ["DATABASE_URL"], "DATABASE_URL")
    for variable, value in environ.items():
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(PREFIX) and name in names and not (name == "dsn" and not value):
            found[name] = (value, variable)
    return found


def misspelled(environ: Mapping[str, str], names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Variables that are not settings but similar to one, each with the variable that was probably meant."""
    for variable in environ:
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(PREFIX) and name not in names and not name.startswith(NOT_SETTINGS):
            for near in get_close_matches(name, names, n=1, cutoff=LIKENESS):
                yield variable, f"{PREFIX}{near.upper()}"


def _named(path: Path, source: str) -> ConfigFile:
    path = path.expanduser().absolute()
    if not path.is_file():
        raise ConfigError(f"{source}: the file {path} does not exist: correct the path or leave it out")
    if path.name != PROJECT_FILE:
        return ConfigFile(path, str(path), _toml(path))
    table = _toml(path).get("tool", {}).get("tenure")
    if table is None:
        raise ConfigError(f"{source}: {path} has no [tool.tenure]: add it, or give another file")
    return ConfigFile(path, f"[tool.tenure] of {path}", table)


def _files_in(folder: Path, working: Path) -> Iterator[ConfigFile]:
    project, own = folder / PROJECT_FILE, folder / OWN_FILE
    table = _project_table(project)
    if table is not None:
        yield ConfigFile(project, f"[tool.tenure] of {_shown(project, working)}", table)
    with suppress(OSError):  # a parent folder that may not be read is skipped
        if own.is_file():
            yield ConfigFile(own, _shown(own, working), _toml(own))


def _project_table(path: Path) -> Mapping[str, Any] | None:
    """None unless the file mentions `tenure`: an unrelated invalid file in a parent folder is not an error."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if "tenure" not in text:
        return None
    table: Mapping[str, Any] | None = _parsed(path, text).get("tool", {}).get("tenure")
    return table


def _toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    return _parsed(path, text)


def _parsed(path: Path, text: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - most processes have no file to read

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None


def _shown(path: Path, working: Path) -> str:
    return min(os.path.relpath(path, working), str(path), key=len)


def _flat(table: Mapping[str, Any], source: str) -> Found:
    flat: Found = {}
    for key, value in table.items():
        if key == "routes":  # its keys are patterns
            flat[key] = (value, source)
        elif isinstance(value, Mapping):
            flat.update(_flat_table(key, value, source))
        else:
            flat[key] = (value, source)
    return flat


def _flat_table(key: str, table: Mapping[str, Any], source: str) -> Found:
    flat: Found = {}
    for inner, item in table.items():
        if key == "workers" and isinstance(item, Mapping):
            flat.update({f"workers.{inner}.{name}": (value, source) for name, value in item.items()})
        else:
            flat[f"{key}_{inner}"] = item, source
    return flat
