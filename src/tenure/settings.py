"""Settings: flags > TENURE_* > tenure.toml > [tool.tenure] in pyproject.toml > defaults.

Nothing is read at import or construction; `Settings.load()` reads once and reports all problems together.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from tenure.leader.settings import STRATEGIES, LeaderSettings, Strategy
from tenure.logs import FORMATS
from tenure.model.durations import to_seconds
from tenure.model.errors import ConfigError
from tenure.model.retries import Retry
from tenure.setting_sources import ConfigFile, config_files, from_environment, misspelled
from tenure.store.target import DatabaseTarget

log = logging.getLogger("tenure")

NO_DSN = """no database is set. Set the PostgreSQL to use in one of these ways:
  tenure ... --dsn postgresql://user@host/database
  TENURE_DSN=postgresql://user@host/database     (DATABASE_URL and PGHOST, PGDATABASE ... work as well)
  dsn = "postgresql://user@host/database"        in tenure.toml or [tool.tenure] of pyproject.toml
  Tenure("postgresql://user@host/database")      in your code
or start one with `tenure dev`: programs in the same folder or below then find it automatically."""

DEFAULT_POOL = "default"
"""The pool that `[workers]` describes."""

SHARED = ("lease_timeout_seconds", "renew_interval_seconds", "scale_interval_ms", "health_file", "name")
"""Settings of `[workers]` that apply to all pools of a supervisor."""


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """The block `[workers]`."""

    default_count: int = 2
    """Processes that run handlers; `tenure up` never runs fewer."""

    max_count: int = 8
    """The most processes that `tenure up` starts when jobs wait. Depends on the machine; at least `default_count`."""

    concurrency: int = 10
    """Jobs that one process runs at a time."""

    queues: tuple[str, ...] = ()
    """Queues to serve. Empty: those of the app's jobs, except those that other pools name."""

    capabilities: tuple[str, ...] = ()
    """What this machine offers. It does not run jobs that require other capabilities."""

    lease_timeout_seconds: float = 15.0
    """How long a worker keeps its jobs without renewing its lease. Lower: the jobs of a dead machine are requeued sooner.
    Higher: tolerates slower networks."""

    renew_interval_seconds: float = 0.0
    """How often that lease is renewed. 0: a third of `lease_timeout_seconds`."""

    grace_seconds: float = 25.0
    """How long running jobs may continue after SIGTERM before they are requeued. Kubernetes kills after 30."""

    stall_limit_seconds: float = 600.0
    """A process whose event loop has not run for this long is frozen, and is killed. Handlers that block the loop on
    purpose belong in a thread."""

    poll_interval_ms: int = 250
    """The longest wait between two polls while there are jobs. When idle it grows to 2 s; notifications are faster."""

    next_job_delay_ms: int = 0
    """A pause between the end of a job and the claim of the next job for its slot."""

    process_max_tasks: int = 100
    """Jobs of `run_in="process"` that one process runs before it is replaced."""

    process_memory_mb: int = 0
    """A process of `run_in="process"` that uses more is killed, and its job has crashed. 0: no limit."""

    scale_interval_ms: int = 1000
    """How often `tenure up` checks whether there are enough processes."""

    scale_wait_seconds: float = 5.0
    """If a job has waited longer, the next check adds a process, up to `max_count`."""

    scale_down_seconds: float = 30.0
    """How long fewer processes must have been enough before one is removed. With a low value processes start and end often."""

    drain_seconds: float = 3600.0
    """How long a process that is replaced or removed may continue its jobs before they are requeued. It claims no jobs
    meanwhile, so a long time does no harm; `grace_seconds` applies to a shutdown."""

    recycle_after_jobs: int = 0
    """A process that has run this many jobs is replaced, to bound the effect of leaks. 0: never."""

    recycle_after_seconds: float = 0.0
    """A process of this age is replaced. 0: never."""

    recycle_above_mb: int = 0
    """A process that uses more memory is replaced; it finishes its jobs. 0: never."""

    restart_limit: int = 20
    """If this many processes of a pool in a row died within 10 s of their start, and no older one is left, the supervisor
    exits with code 9. 0: never."""

    health_file: str | None = None
    """A file that is touched while the supervisor is alive, and FILE.ready while leases are renewed: for `tenure health`."""

    name: str | None = None
    """The name of this worker in `tenure workers`, events and logs. Further processes are NAME-2, NAME-3. Default: host:pid."""

    @property
    def renew_every(self) -> float:
        # Two renewals may fail before the lease is lost.
        return self.renew_interval_seconds or self.lease_timeout_seconds / 3


@dataclass(frozen=True, kw_only=True)
class Settings:
    name: str | None = None
    """The name of the app, which owns the schedules that its code declares. Default: `module:attribute`."""
    app: str = "app:app"
    """The Tenure object that workers load and `tenure enqueue` uses to check jobs, as module:attribute."""
    log_format: str = "text"
    """The log format of the processes that Tenure starts: text or json."""
    dsn: str | None = None
    listen_dsn: str | None = None
    schema: str = "tenure"
    pooled: bool | None = None
    retention_seconds: float = 7 * 86400.0
    dead_letter_retention_seconds: float = 30 * 86400.0
    client_timeout_seconds: float = 10.0
    """How long enqueues and reads are retried while PostgreSQL cannot be reached, before they raise `StoreUnavailable`.
    Should be less than the timeout of a web request."""
    notify_in_transactions: bool = True
    """Whether a job that is enqueued in the caller's transaction (`conn=`) notifies workers when it commits. A NOTIFY takes a
    lock for the whole database at commit; without it workers find the job by polling, within 2 s."""
    retry_max_attempts: int | None = None
    """The block `[retry]`: the default for all jobs without their own retry. The names are those of `Retry`."""
    retry_backoff: str | None = None
    retry_initial: str | None = None
    retry_multiplier: float | None = None
    retry_max_backoff: str | None = None
    retry_jitter: bool | None = None
    leader_strategy: str = "lease"
    """How the leader's duties are assigned: lease, shared or advisory."""
    leader_rotate_seconds: float = 60.0
    """After how long a duty is handed to another process, if there is one. 0: never."""
    log_failed_attempt: str = "warning"
    """The log level of a failed attempt, with its exception, and of a job that its handler ended with `Fail`."""
    log_dead_letter: str = "error"
    """The log level of a job that becomes a dead letter: its attempts are used up, or it was in too many crashes."""
    log_schedule_missed: str = "warning"
    """The log level of planned times of a schedule for which no job was enqueued, because there was no leader."""
    log_schedule_skipped: str = "info"
    """The log level of a planned time of a schedule that was skipped, because an earlier job of it was live."""
    leader_term_seconds: float = 10.0
    """How long a process keeps a duty without a heartbeat. When a leader dies, its duties pause for that time."""
    leader_heartbeat_seconds: float = 2.0
    leader_reap_interval_seconds: float = 5.0
    """The longest wait between two searches for workers and jobs whose lease expired. The reaper acts sooner when one expires."""
    leader_cleanup_interval_seconds: float = 1200.0
    """How often partitions are created and dropped, and old rows deleted."""
    workers: WorkerSettings = WorkerSettings()
    pools: Mapping[str, WorkerSettings] = field(default_factory=dict)
    """`[workers.NAME]`, each with the settings it inherits from `[workers]`."""

    def in_pool(self, name: str) -> Settings:
        """The settings of a process of this pool."""
        if name == DEFAULT_POOL:
            return self
        if name not in self.pools:
            raise ConfigError(f"there is no pool {name!r}: add [workers.{name}] to tenure.toml, or leave it out")
        return replace(self, workers=self.pools[name])

    @property
    def leader(self) -> LeaderSettings:
        return LeaderSettings(
            retention=self.retention_seconds,
            dead_letter_retention=self.dead_letter_retention_seconds,
            strategy=cast("Strategy", self.leader_strategy),
            rotate=self.leader_rotate_seconds,
            term=self.leader_term_seconds,
            heartbeat=self.leader_heartbeat_seconds,
            reap_every=self.leader_reap_interval_seconds,
            clean_every=self.leader_cleanup_interval_seconds,
            dead_letter_level=getattr(logging, self.log_dead_letter.upper()),
            schedule_missed_level=getattr(logging, self.log_schedule_missed.upper()),
            schedule_skipped_level=getattr(logging, self.log_schedule_skipped.upper()),
        )

    @property
    def retry(self) -> Retry:
        """The default for all jobs without their own retry."""
        names = ("max_attempts", "backoff", "initial", "multiplier", "max_backoff", "jitter")
        given = {name: getattr(self, f"retry_{name}") for name in names}
        return Retry.from_value({name: value for name, value in given.items() if value is not None})

    @property
    def database(self) -> DatabaseTarget:
        # Also finds an embedded server that was started after these settings were read.
        dsn = self.dsn if self.dsn is not None else _running_embedded(Path.cwd())[0]
        if dsn is None:
            raise ConfigError(NO_DSN)
        return DatabaseTarget.at(dsn, schema=self.schema, pooled=self.pooled, listen_dsn=self.listen_dsn)

    @staticmethod
    def load(
        *, folder: Path | None = None, environ: Mapping[str, str] | None = None, embedded: bool = True, **flags: Any
    ) -> Settings:
        """`flags` that are None are ignored; `config` is the file to read. Without `embedded`, a running embedded server of the
        project is not used."""
        return Settings.explained([("the call", flags)], folder=folder, environ=environ, embedded=embedded)[0]

    @staticmethod
    def explained(
        flags: Sequence[tuple[str, Mapping[str, Any]]],
        *,
        folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
        embedded: bool = True,
    ) -> tuple[Settings, dict[str, str]]:
        """The settings, and the source of each. `flags` by source; the last one has precedence."""
        folder, environ = folder or Path.cwd(), os.environ if environ is None else environ
        given: dict[str, tuple[Any, str]] = {}
        for file in _files(flags, folder, environ):
            given.update(file.settings(folder.absolute()))
        given.update(from_environment(environ, _readers(), have_dsn="dsn" in given))
        _warn_of_misspelled(environ)
        for source, values in flags:
            given.update({name: (value, source) for name, value in values.items() if value is not None and name != "config"})
        if embedded and "dsn" not in given:
            dsn, where = _running_embedded(folder)
            if dsn is not None:
                given["dsn"] = dsn, where
        sources = {name: given[name][1] if name in given else "default" for name in _readers()}
        return _built(given), {**sources, **{name: source for name, (_, source) in given.items() if name.startswith("workers.")}}


def setting_names() -> list[str]:
    return list(_readers())


def _files(flags: Sequence[tuple[str, Mapping[str, Any]]], folder: Path, environ: Mapping[str, str]) -> list[ConfigFile]:
    named = [values["config"] for _, values in flags if values.get("config")]
    return config_files(folder, environ, named[-1] if named else None)


_suspected: set[str] = set()


def _warn_of_misspelled(environ: Mapping[str, str]) -> None:
    """Once per process."""
    for variable, meant in misspelled(environ, _readers()):
        if variable not in _suspected:
            _suspected.add(variable)
            log.warning("%s is not a setting and is ignored; did you mean %s?", variable, meant, extra={"variable": variable})


_announced: set[Path] = set()


def _running_embedded(folder: Path) -> tuple[str | None, str]:
    """The DSN of the embedded server that runs for this folder, and its source. Logged once per process."""
    from tenure.embedded.finding import running_server  # noqa: PLC0415 - needed only without a DSN

    found = running_server(folder)
    if found is None:
        return None, ""
    if found.home not in _announced:
        _announced.add(found.home)
        log.info("no database is set: using the embedded PostgreSQL of this project", extra={"home": str(found.home)})
    return found.dsn, f"the embedded server in {found.home}"


def _built(given: Mapping[str, tuple[Any, str]]) -> Settings:
    readers, own_readers = _readers(), _pool_readers()
    values: dict[str, Any] = {}
    pools: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for name, (value, source) in given.items():
        _, pool, inner = name.split(".", 2) if name.startswith("workers.") else ("", "", name)
        known = own_readers if pool else readers
        into = pools.setdefault(pool, {}) if pool else values
        if inner not in known:
            problems.append(f"{source}: {_unknown(inner, pool, known)}")
            continue
        try:
            into[inner] = known[inner](value)
        except (ValueError, ConfigError) as error:
            problems.append(f"{source}: {name}: {error}")
    workers = {name.removeprefix("workers_"): value for name, value in values.items() if name.startswith("workers_")}
    others = {name: value for name, value in values.items() if not name.startswith("workers_")}
    if others.get("leader_strategy", "lease") not in STRATEGIES:
        problems.append(f"leader.strategy must be one of {', '.join(STRATEGIES)}")
    if others.get("log_format", "text") not in FORMATS:
        problems.append(f"log_format must be one of {', '.join(FORMATS)}")
    problems += _retry_problems(others) + _leader_contradictions(others) + _contradictions("workers", workers)
    for pool, own in pools.items():
        problems += _misnamed(pool) + _contradictions(f"workers.{pool}", own, workers)
    name = workers.get("name") or ""
    if len(name.encode()) > 200 or not name.isprintable():
        problems.append("workers.name must be at most 200 bytes of printable text")
    if problems:
        raise ConfigError("invalid settings: " + "; ".join(problems))
    base = _worker_settings(workers)
    return Settings(**others, workers=base, pools={name: _worker_settings(own, workers) for name, own in pools.items()})


def _retry_problems(given: Mapping[str, Any]) -> list[str]:
    try:
        _ = Settings(**{name: value for name, value in given.items() if name.startswith("retry_")}).retry
    except ConfigError as error:
        return [str(error)]
    return []


def _worker_settings(own: Mapping[str, Any], inherited: Mapping[str, Any] | None = None) -> WorkerSettings:
    values = {**(inherited or {}), **own}
    if inherited is not None and "queues" not in own:
        values.pop("queues", None)
    if "default_count" in values:
        values.setdefault("max_count", max(WorkerSettings.max_count, values["default_count"]))
    return WorkerSettings(**values)


def _unknown(name: str, pool: str, known: Mapping[str, Any]) -> str:
    if pool and name in SHARED:
        return f"{name!r} is the same for all pools: set it in [workers], not in [workers.{pool}]"
    near = get_close_matches(name, known, n=1)
    where = f" in [workers.{pool}]" if pool else ""
    return f"unknown setting {name!r}{where}" + (f"; did you mean {near[0]!r}?" if near else "")


def _misnamed(pool: str) -> list[str]:
    if pool == DEFAULT_POOL:
        return [f"[workers.{pool}]: {pool!r} is the name of the pool in [workers]; give this pool another name"]
    if pool in _pool_readers() or pool in SHARED:
        return [f"[workers.{pool}]: {pool!r} is a setting; give this pool another name"]
    return []


LEVELS = ("debug", "info", "warning", "error", "critical")
AT_LEAST_ONE = ("concurrency", "default_count", "max_count", "process_max_tasks", "poll_interval_ms")
AT_LEAST_NONE = (
    "process_memory_mb",
    "next_job_delay_ms",
    "recycle_after_jobs",
    "recycle_above_mb",
    "restart_limit",
)


def _leader_contradictions(given: Mapping[str, Any]) -> list[str]:
    heartbeat, term, reap, cleanup = (
        given.get(f"leader_{name}", getattr(Settings, f"leader_{name}"))
        for name in ("heartbeat_seconds", "term_seconds", "reap_interval_seconds", "cleanup_interval_seconds")
    )
    found = []
    if heartbeat < 0.5:
        found.append(f"leader.heartbeat_seconds is {heartbeat:g}, but must be at least 0.5: each one is a write")
    if term < 3 * heartbeat:
        found.append(
            f"leader.term_seconds is {term:g}, but must be at least three heartbeats ({3 * heartbeat:g}): two may fail before a"
            " duty is lost; raise leader.term_seconds or lower leader.heartbeat_seconds"
        )
    if term < 3:
        found.append(f"leader.term_seconds is {term:g}, but must be at least 3: a holder stops a second before its term ends")
    if not 1 <= reap <= 60:
        found.append(f"leader.reap_interval_seconds is {reap:g}, but must be from 1 to 60")
    if cleanup < 10:
        found.append(f"leader.cleanup_interval_seconds is {cleanup:g}, but must be at least 10: each round reads a dozen tables")
    return found


def _contradictions(block: str, own: Mapping[str, Any], inherited: Mapping[str, Any] | None = None) -> list[str]:
    found = []
    if own.get("lease_timeout_seconds", 15) < 3:
        found.append(f"{block}.lease_timeout_seconds must be at least 3: a short delay would end a shorter lease")
    lease, renew = own.get("lease_timeout_seconds", 15), own.get("renew_interval_seconds", 0)
    if renew and not 0.5 <= renew <= lease / 2:
        found.append(
            f"{block}.renew_interval_seconds is {renew:g}, but must be from 0.5 to half of lease_timeout_seconds ({lease / 2:g}),"
            " so that one renewal may fail; 0 is a third of it"
        )
    if own.get("scale_interval_ms", 1000) < 100:
        found.append(f"{block}.scale_interval_ms must be at least 100: each check queries PostgreSQL")
    found += [f"{block}.{name} must be at least 1" for name in AT_LEAST_ONE if own.get(name, 1) < 1]
    found += [f"{block}.{name} must be 0 (no limit) or more" for name in AT_LEAST_NONE if own.get(name, 0) < 0]
    values = {**(inherited or {}), **own}
    least, most = values.get("default_count", WorkerSettings.default_count), values.get("max_count")
    if most is not None and most < least and {"default_count", "max_count"} & own.keys():
        found.append(f"{block}.max_count is {most}, but default_count is {least}: raise the one or lower the other")
    return found


def _readers() -> dict[str, Callable[[Any], Any]]:
    readers: dict[str, Callable[[Any], Any]] = {
        f.name: _reader(f.name, str(f.type)) for f in fields(Settings) if f.name not in ("workers", "pools")
    }
    readers.update({f"workers_{f.name}": _reader(f.name, str(f.type)) for f in fields(WorkerSettings)})
    return readers


def _pool_readers() -> dict[str, Callable[[Any], Any]]:
    return {f.name: _reader(f.name, str(f.type)) for f in fields(WorkerSettings) if f.name not in SHARED}


def _reader(name: str, annotation: str) -> Callable[[Any], Any]:
    if name.endswith("_seconds"):
        return lambda value: to_seconds(float(value) if _is_number(value) else value, what=name)
    if name in ("log_failed_attempt", "log_dead_letter", "log_schedule_missed", "log_schedule_skipped"):
        return _level
    readers: dict[str, Callable[[Any], Any]] = {
        "int": _int,
        "int | None": _int,
        "bool": _bool,
        "bool | None": _bool,
        "float | None": float,
        "tuple[str, ...]": _names,
    }
    return readers.get(annotation, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and value.replace(".", "", 1).isdigit()


def _int(value: Any) -> int:
    if isinstance(value, bool | float) or not isinstance(value, int | str):
        raise ValueError(f"{value!r} is not a whole number")  # noqa: TRY004 - reported with the other problems
    return int(value)


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in ("1", "true", "yes", "on"):
        return True
    if str(value).lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"{value!r} is not a boolean: use true or false")


def _level(value: Any) -> str:
    if str(value).lower() not in LEVELS:
        raise ValueError(f"{value!r} is not a log level: use {', '.join(LEVELS)}")
    return str(value).lower()


def _names(value: Any) -> tuple[str, ...]:
    """A list, or names separated by commas, as in variables."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{value!r} is not a list of names")
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
