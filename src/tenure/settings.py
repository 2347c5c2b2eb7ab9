"""Settings: flags > TENURE_* > tenure.toml > [tool.tenure] in pyproject.toml > defaults.

Nothing is read at import or construction; `Settings.load()` reads once, and every fault is told at once.
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

NO_DSN = """no database is set. Say which PostgreSQL to use in one of these ways:
  tenure ... --dsn postgresql://user@host/database
  TENURE_DSN=postgresql://user@host/database     (DATABASE_URL and PGHOST, PGDATABASE ... work as well)
  dsn = "postgresql://user@host/database"        in tenure.toml or [tool.tenure] of pyproject.toml
  Tenure("postgresql://user@host/database")      in your code
or start one with `tenure dev`: programs in the same folder, or below it, then find it by themselves."""

DEFAULT_POOL = "default"
"""The pool that `[workers]` itself describes."""

SHARED = ("lease_timeout_seconds", "renew_interval_seconds", "scale_interval_ms", "health_file", "name")
"""Settings of `[workers]` that a supervisor has once, for all of its pools."""


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """The block `[workers]`."""

    default_count: int = 2
    """How many processes run handlers; `tenure up` never has fewer."""

    max_count: int = 8
    """As many as `tenure up` starts when jobs wait: what this machine can bear. No less than `default_count`."""

    concurrency: int = 10
    """How many jobs run at a time in one process."""

    queues: tuple[str, ...] = ()
    """Queues to serve. None: those of the app's jobs, but for those that other pools name."""

    capabilities: tuple[str, ...] = ()
    """What this machine can do. Jobs that need more are left to others."""

    lease_timeout_seconds: float = 15.0
    """How long a worker's jobs stay its own without a sign of life. Less: a dead machine's jobs come back sooner. More:
    kinder to slow networks."""

    renew_interval_seconds: float = 0.0
    """How often that lease is renewed. 0: three times in its span."""

    grace_seconds: float = 25.0
    """How long running jobs may go on after SIGTERM before they are handed back. Kubernetes kills after 30."""

    stall_limit_seconds: float = 600.0
    """A process whose event loop has not moved for so long is frozen, and is killed. Handlers that block the loop on
    purpose belong in a thread."""

    poll_interval_ms: int = 250
    """Longest wait between two looks for work while there is some. When idle it grows to 2 s; notifications come sooner."""

    next_job_delay_ms: int = 0
    """A pause between the end of a job and the claim that fills its slot again."""

    process_max_tasks: int = 100
    """Jobs of `run_in="process"` that one process runs before it is replaced."""

    process_memory_mb: int = 0
    """A process of `run_in="process"` that holds more is killed, and its job has crashed. 0: no limit."""

    scale_interval_ms: int = 1000
    """How often `tenure up` looks whether there are enough processes."""

    scale_wait_seconds: float = 5.0
    """When a job has waited longer, there is one more process at the next look, up to `max_count`."""

    scale_down_seconds: float = 30.0
    """How long fewer processes must have been enough before there is one less. Less: they come and go."""

    drain_seconds: float = 3600.0
    """How long a process that is replaced, or one too many, may go on with what it runs before that is handed back. It claims
    nothing meanwhile, so there is no hurry; that of a shutdown is `grace_seconds`."""

    recycle_after_jobs: int = 0
    """A process that has run so many jobs is replaced: whatever leaks, leaks for so long only. 0: never."""

    recycle_after_seconds: float = 0.0
    """A process that is so old is replaced. 0: never."""

    recycle_above_mb: int = 0
    """A process that holds more memory is replaced, in order. 0: never."""

    restart_limit: int = 20
    """When so many processes of a pool in a row died within 10 s of their start, and no older one is left, the supervisor
    gives up with exit code 9. 0: never."""

    health_file: str | None = None
    """A file that is touched while the supervisor lives, and FILE.ready while leases are renewed: for `tenure health`."""

    name: str | None = None
    """Of this worker, in `tenure workers`, events and logs. Further processes are NAME-2, NAME-3. Else host:pid."""

    @property
    def renew_every(self) -> float:
        # Two renewals may fail before the lease is lost.
        return self.renew_interval_seconds or self.lease_timeout_seconds / 3


@dataclass(frozen=True, kw_only=True)
class Settings:
    name: str | None = None
    """Of the app: what its code declares (schedules) is its own. Else `module:attribute`."""
    app: str = "app:app"
    """The Tenure object that workers load and `tenure enqueue` checks by, as module:attribute."""
    log_format: str = "text"
    """How the processes that Tenure starts write their log: text or json."""
    dsn: str | None = None
    listen_dsn: str | None = None
    schema: str = "tenure"
    pooled: bool | None = None
    retention_seconds: float = 7 * 86400.0
    dead_letter_retention_seconds: float = 30 * 86400.0
    client_timeout_seconds: float = 10.0
    """For how long enqueues and reads are repeated while PostgreSQL cannot be reached, before the caller gets
    `StoreUnavailable`. Less than a web request may take."""
    notify_in_transactions: bool = True
    """Whether a job that is enqueued in a transaction of the caller's (`conn=`) notifies workers when that commits. A NOTIFY
    takes a lock for the whole database at commit; without it workers find the job by polling, within 2 s."""
    retry_max_attempts: int | None = None
    """The block `[retry]`: the default of all jobs that have no retry of their own. Its names are those of `Retry`."""
    retry_backoff: str | None = None
    retry_initial: str | None = None
    retry_multiplier: float | None = None
    retry_max_backoff: str | None = None
    retry_jitter: bool | None = None
    leader_strategy: str = "lease"
    """How it is settled who does the duties of the fleet: lease, shared or advisory."""
    leader_rotate_seconds: float = 60.0
    """After how long a duty is handed to another process, if there is one. 0: never."""
    log_failed_attempt: str = "warning"
    """The level at which a failed attempt is logged, with its exception, and a job that its handler ended with `Fail`."""
    log_dead_letter: str = "error"
    """The level at which a job is logged that becomes a dead letter: its attempts are used up, or it was in too many crashes."""
    log_schedule_missed: str = "warning"
    """The level at which planned times of a schedule are logged for which no job was enqueued, because no leader was there."""
    log_schedule_skipped: str = "info"
    """The level at which a planned time of a schedule is logged that was skipped, because an earlier job of it was live."""
    leader_term_seconds: float = 10.0
    """How long a duty stays its holder's without a heartbeat: when a leader dies, its duties are not done for that time."""
    leader_heartbeat_seconds: float = 2.0
    leader_reap_interval_seconds: float = 5.0
    """Longest wait between two looks for workers and jobs whose lease ran out. The reaper looks sooner when a lease ends."""
    leader_cleanup_interval_seconds: float = 1200.0
    """How often partitions are made and dropped, and old rows removed."""
    workers: WorkerSettings = WorkerSettings()
    pools: Mapping[str, WorkerSettings] = field(default_factory=dict)
    """`[workers.NAME]`, each with what it inherits from `[workers]`."""

    def in_pool(self, name: str) -> Settings:
        """As a process of this pool sees them."""
        if name == DEFAULT_POOL:
            return self
        if name not in self.pools:
            raise ConfigError(f"there is no pool {name!r}: write [workers.{name}] into tenure.toml, or leave it out")
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
        """The default of all jobs that have no retry of their own."""
        names = ("max_attempts", "backoff", "initial", "multiplier", "max_backoff", "jitter")
        given = {name: getattr(self, f"retry_{name}") for name in names}
        return Retry.from_value({name: value for name, value in given.items() if value is not None})

    @property
    def database(self) -> DatabaseTarget:
        # A server that was started since these settings were read counts as well.
        dsn = self.dsn if self.dsn is not None else _running_embedded(Path.cwd())[0]
        if dsn is None:
            raise ConfigError(NO_DSN)
        return DatabaseTarget.at(dsn, schema=self.schema, pooled=self.pooled, listen_dsn=self.listen_dsn)

    @staticmethod
    def load(
        *, folder: Path | None = None, environ: Mapping[str, str] | None = None, embedded: bool = True, **flags: Any
    ) -> Settings:
        """`flags` that are None were not given; `config` names the file to read. Without `embedded`, a running server of the
        project is not looked for."""
        return Settings.explained([("the call", flags)], folder=folder, environ=environ, embedded=embedded)[0]

    @staticmethod
    def explained(
        flags: Sequence[tuple[str, Mapping[str, Any]]],
        *,
        folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
        embedded: bool = True,
    ) -> tuple[Settings, dict[str, str]]:
        """The settings, and where each came from. `flags` by their source, the last one wins."""
        folder, environ = folder or Path.cwd(), os.environ if environ is None else environ
        given: dict[str, tuple[Any, str]] = {}
        for file in _files(flags, folder, environ):
            given.update(file.settings(folder.absolute()))
        given.update(from_environment(environ, _readers(), have_dsn="dsn" in given))
        _warn_of_misspelled(environ)
        for source, values in flags:
            told = {name: (value, source) for name, value in values.items() if value is not None and name != "config"}
            given.update(told)
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
    """Once in a process."""
    for variable, meant in misspelled(environ, _readers()):
        if variable not in _suspected:
            _suspected.add(variable)
            log.warning("%s is not a setting and is ignored; did you mean %s?", variable, meant, extra={"variable": variable})


_announced: set[Path] = set()


def _running_embedded(folder: Path) -> tuple[str | None, str]:
    """The DSN of the embedded server that runs for this folder, and where that is. Logged once in a process."""
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
    called = workers.get("name") or ""
    if len(called.encode()) > 200 or not called.isprintable():
        problems.append("workers.name must be at most 200 bytes of printable text")
    if problems:
        raise ConfigError("the settings are wrong: " + "; ".join(problems))
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
        return f"{name!r} is the same for all pools: it belongs into [workers], not into [workers.{pool}]"
    near = get_close_matches(name, known, n=1)
    where = f" in [workers.{pool}]" if pool else ""
    return f"unknown setting {name!r}{where}" + (f"; did you mean {near[0]!r}?" if near else "")


def _misnamed(pool: str) -> list[str]:
    if pool == DEFAULT_POOL:
        return [f"[workers.{pool}]: what [workers] describes is called {pool!r} already; give this pool another name"]
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
        found.append(
            f"leader.cleanup_interval_seconds is {cleanup:g}, but must be at least 10: each round looks at a dozen tables"
        )
    return found


def _contradictions(block: str, own: Mapping[str, Any], inherited: Mapping[str, Any] | None = None) -> list[str]:
    found = []
    if own.get("lease_timeout_seconds", 15) < 3:
        found.append(f"{block}.lease_timeout_seconds must be at least 3: a shorter lease is lost to any hiccup")
    lease, renew = own.get("lease_timeout_seconds", 15), own.get("renew_interval_seconds", 0)
    if renew and not 0.5 <= renew <= lease / 2:
        found.append(
            f"{block}.renew_interval_seconds is {renew:g}, but must be from 0.5 to half of lease_timeout_seconds ({lease / 2:g}),"
            " so that one renewal may fail; 0 is a third of it"
        )
    if own.get("scale_interval_ms", 1000) < 100:
        found.append(f"{block}.scale_interval_ms must be at least 100: every look asks PostgreSQL")
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


def _level(value: Any) -> str:
    if str(value).lower() not in LEVELS:
        raise ValueError(f"{value!r} is not a level: use {', '.join(LEVELS)}")
    return str(value).lower()


def _names(value: Any) -> tuple[str, ...]:
    """A list, or text with commas, as variables have it."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{value!r} is no list of names")
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
