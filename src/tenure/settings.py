"""Where settings come from: flags > TENURE_* > tenure.toml > [tool.tenure] in pyproject.toml > defaults.

Nothing is read at import or construction; `Settings.load()` reads once, and every fault is told at once.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from tenure.leader.settings import STRATEGIES, LeaderSettings, Strategy
from tenure.model.durations import to_seconds
from tenure.model.errors import ConfigError
from tenure.store.place import Place

NO_DSN = """no database is set. Say which PostgreSQL to use in one of these ways:
  tenure ... --dsn postgresql://user@host/database
  TENURE_DSN=postgresql://user@host/database     (DATABASE_URL and PGHOST, PGDATABASE ... work as well)
  dsn = "postgresql://user@host/database"        in tenure.toml or [tool.tenure] of pyproject.toml
  Tenure("postgresql://user@host/database")      in your code
or let `tenure dev`, `tenure up` or `tenure demo` start one for you."""


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """The block `[workers]`."""

    default_count: int = 1
    """How many processes run handlers."""

    concurrency: int = 10
    """How many jobs run at a time in one process."""

    lease_timeout_seconds: float = 15.0
    """How long a worker's jobs stay its own without a sign of life. Less: a dead machine's jobs come back sooner. More:
    kinder to slow networks. Renewed three times in that span."""

    grace_seconds: float = 25.0
    """How long running jobs may go on after SIGTERM before they are handed back. Kubernetes kills after 30."""

    stall_limit_seconds: float = 600.0
    """A process whose event loop has not moved for so long is frozen, and is killed. Handlers that block the loop on
    purpose belong in a thread."""

    poll_interval_ms: int = 250
    """Longest wait between two looks for work while there is some. When idle it grows to 2 s; notifications come sooner."""

    next_job_delay_ms: int = 0
    """A pause before each further claim."""

    process_max_tasks: int = 100
    """Jobs of `run_in="process"` that one process runs before it is replaced."""

    process_memory_mb: int = 0
    """A process of `run_in="process"` that holds more is killed, and its job has crashed. 0: no limit."""

    @property
    def renew_every(self) -> float:
        return self.lease_timeout_seconds / 3  # two renewals may fail before the lease is lost


@dataclass(frozen=True, kw_only=True)
class Settings:
    name: str | None = None
    """Of the app: what its code declares (schedules) is its own. Else `module:attribute`."""
    dsn: str | None = None
    listen_dsn: str | None = None
    schema: str = "tenure"
    pooled: bool | None = None
    retention_seconds: float = 7 * 86400.0
    dead_letter_retention_seconds: float = 30 * 86400.0
    leader_strategy: str = "lease"
    """How it is settled who does the duties of the fleet: lease, shared or advisory."""
    leader_rotate_seconds: float = 60.0
    """After how long a duty is handed to another process, if there is one. 0: never."""
    workers: WorkerSettings = WorkerSettings()

    @property
    def leader(self) -> LeaderSettings:
        return LeaderSettings(
            retention=self.retention_seconds,
            dead_letter_retention=self.dead_letter_retention_seconds,
            strategy=cast("Strategy", self.leader_strategy),
            rotate=self.leader_rotate_seconds,
        )

    @property
    def place(self) -> Place:
        if self.dsn is None:
            raise ConfigError(NO_DSN)
        return Place.at(self.dsn, schema=self.schema, pooled=self.pooled, listen_dsn=self.listen_dsn)

    @staticmethod
    def load(*, folder: Path | None = None, environ: Mapping[str, str] | None = None, **flags: Any) -> Settings:
        """`flags` that are None were not given."""
        return Settings.explained([("the call", flags)], folder=folder, environ=environ)[0]

    @staticmethod
    def explained(
        flags: Sequence[tuple[str, Mapping[str, Any]]], *, folder: Path | None = None, environ: Mapping[str, str] | None = None
    ) -> tuple[Settings, dict[str, str]]:
        """The settings, and where each came from. `flags` by their source, the last one wins."""
        given = _from_files(folder or Path.cwd())
        given.update(_from_environment(os.environ if environ is None else environ, have_dsn="dsn" in given))
        for source, values in flags:
            given.update({name: (value, source) for name, value in values.items() if value is not None})
        return _built(given), {name: given[name][1] if name in given else "default" for name in _readers()}


def _from_files(folder: Path) -> dict[str, tuple[Any, str]]:
    own, project = folder / "tenure.toml", folder / "pyproject.toml"
    found: dict[str, tuple[Any, str]] = {}
    if project.is_file():
        table = _toml(project).get("tool", {}).get("tenure", {})
        found.update(_flat(table, "[tool.tenure] of pyproject.toml"))
    if own.is_file():
        found.update(_flat(_toml(own), "tenure.toml"))
    return found


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None


def _flat(table: Mapping[str, Any], source: str) -> dict[str, tuple[Any, str]]:
    flat: dict[str, tuple[Any, str]] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat.update({f"{key}_{inner}": (item, source) for inner, item in value.items()})
        else:
            flat[key] = (value, source)
    return flat


def _from_environment(environ: Mapping[str, str], *, have_dsn: bool) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    if not have_dsn and any(environ.get(name) for name in ("PGHOST", "PGDATABASE", "PGSERVICE", "PGHOSTADDR")):
        found["dsn"] = ("", "PG* variables")  # libpq reads them itself
    if environ.get("DATABASE_URL"):
        found["dsn"] = (environ["DATABASE_URL"], "DATABASE_URL")
    names = set(_readers())
    for variable, value in environ.items():
        name = variable.removeprefix("TENURE_").lower()
        if variable.startswith("TENURE_") and name in names:
            found[name] = (value, variable)
    return found


def _built(given: Mapping[str, tuple[Any, str]]) -> Settings:
    readers = _readers()
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, (value, source) in given.items():
        if name not in readers:
            near = get_close_matches(name, readers, n=1)
            problems.append(f"{source}: unknown setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
            continue
        try:
            values[name] = readers[name](value)
        except (ValueError, ConfigError) as error:
            problems.append(f"{source}: {name}: {error}")
    problems += _contradictions(values)
    if problems:
        raise ConfigError("the settings are wrong: " + "; ".join(problems))
    workers = {name.removeprefix("workers_"): value for name, value in values.items() if name.startswith("workers_")}
    others = {name: value for name, value in values.items() if not name.startswith("workers_")}
    return Settings(**others, workers=WorkerSettings(**workers))


def _contradictions(values: Mapping[str, Any]) -> list[str]:
    found = []
    if values.get("leader_strategy", "lease") not in STRATEGIES:
        found.append(f"leader.strategy must be one of {', '.join(STRATEGIES)}")
    if values.get("workers_lease_timeout_seconds", 15) < 3:
        found.append("workers.lease_timeout_seconds must be at least 3: a shorter lease is lost to any hiccup")
    found += [
        f"{name} must be at least 1"
        for name in ("workers_concurrency", "workers_default_count", "workers_process_max_tasks")
        if values.get(name, 1) < 1
    ]
    if values.get("workers_process_memory_mb", 0) < 0:
        found.append("workers.process_memory_mb must be 0 (no limit) or more")
    return found


def _readers() -> dict[str, Callable[[Any], Any]]:
    readers: dict[str, Callable[[Any], Any]] = {
        f.name: _reader(f.name, str(f.type)) for f in fields(Settings) if f.name != "workers"
    }
    readers.update({f"workers_{f.name}": _reader(f.name, str(f.type)) for f in fields(WorkerSettings)})
    return readers


def _reader(name: str, annotation: str) -> Callable[[Any], Any]:
    if name.endswith("_seconds"):
        return lambda value: to_seconds(float(value) if _is_number(value) else value, what=name)
    readers: dict[str, Callable[[Any], Any]] = {"int": _int, "bool | None": _bool}
    return readers.get(annotation, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and value.replace(".", "", 1).isdigit()


def _int(value: Any) -> int:
    if isinstance(value, bool | float) or not isinstance(value, int | str):
        raise ValueError(f"{value!r} is not a whole number")  # noqa: TRY004 - told with the other faults
    return int(value)


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in ("1", "true", "yes", "on"):
        return True
    if str(value).lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"{value!r} is neither true nor false")
