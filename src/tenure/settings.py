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
from tenure.model.errors import ConfigError
from tenure.model.retries import Retry
from tenure.model.routes import Routes
from tenure.setting_readers import reader
from tenure.setting_sources import ConfigFile, config_files, from_environment, misspelled
from tenure.store.target import DatabaseTarget
from tenure.worker_settings import SHARED, WorkerSettings, contradictions, worker_settings

log = logging.getLogger("tenure")

NO_DSN = """no database is set. Set the PostgreSQL to use in one of these ways:
  tenure ... --dsn postgresql://user@host/database
  TENURE_DSN=postgresql://user@host/database     (DATABASE_URL and PGHOST, PGDATABASE ... work as well)
  dsn = "postgresql://user@host/database"        in tenure.toml or [tool.tenure] of pyproject.toml
  Tenure("postgresql://user@host/database")      in your code
or start one with `tenure dev`: programs in the same folder or below then find it automatically."""

SHORTEST_AUDIT = 30 * 86400.0
"""Seconds. `drop_audit.sql` keeps entries of the audit log for at least this long."""

DEFAULT_POOL = "default"
"""The pool that `[workers]` describes."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    name: str | None = None
    """The name of the app, which owns the schedules that its code declares. Default: `module:attribute`."""
    app: str = "app:app"
    """The Tenure object that workers load and `tenure enqueue` uses to check jobs, as module:attribute."""
    app_version: str | None = None
    """The version of the app's own code, which its workers report: a release, or a commit. The dashboard shows when it changes.
    Not the version of a workflow."""
    log_format: str = "text"
    """The log format of the processes that Tenure starts: text or json."""
    dsn: str | None = None
    listen_dsn: str | None = None
    schema: str = "tenure"
    pooled: bool | None = None
    retention_seconds: float = 7 * 86400.0
    dead_letter_retention_seconds: float = 30 * 86400.0
    event_retention_seconds: float = 7 * 86400.0
    audit_retention_seconds: float = 365 * 86400.0
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
    web_listen: int = 8080
    """The port of the web server that `tenure up` and `tenure dev` start on 127.0.0.1. 0: none. Not named `web_port`: Kubernetes
    sets TENURE_WEB_PORT to a URL, for a service named tenure-web."""
    web_secret_names: tuple[str, ...] = ()
    """Names whose values web servers hide, besides those that they know."""
    routes: Routes = ()
    """`[routes]`: queues and priorities by patterns of kinds. They win over the definition of a job, and options of a call over
    them."""
    workers: WorkerSettings = field(default_factory=WorkerSettings)
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
            event_retention=self.event_retention_seconds,
            audit_retention=self.audit_retention_seconds,
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
    if not 0 <= others.get("web_listen", 0) <= 65535:
        problems.append("web_listen must be a port, 1 to 65535, or 0 for none")
    problems += _retry_problems(others) + _leader_contradictions(others) + contradictions("workers", workers)
    for pool, own in pools.items():
        problems += _misnamed(pool) + contradictions(f"workers.{pool}", own, workers)
    problems += _unprintable("workers.name", workers.get("name")) + _unprintable("app_version", others.get("app_version"))
    if problems:
        raise ConfigError("invalid settings: " + "; ".join(problems))
    base = worker_settings(workers)
    return Settings(**others, workers=base, pools={name: worker_settings(own, workers) for name, own in pools.items()})


def _unprintable(name: str, text: str | None) -> list[str]:
    is_fine = not text or (len(text.encode()) <= 200 and text.isprintable())
    return [] if is_fine else [f"{name} must be at most 200 bytes of printable text"]


def _retry_problems(given: Mapping[str, Any]) -> list[str]:
    try:
        _ = Settings(**{name: value for name, value in given.items() if name.startswith("retry_")}).retry
    except ConfigError as error:
        return [str(error)]
    return []


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


def _leader_contradictions(given: Mapping[str, Any]) -> list[str]:
    heartbeat, term, reap, cleanup = (
        given.get(f"leader_{name}", getattr(Settings, f"leader_{name}"))
        for name in ("heartbeat_seconds", "term_seconds", "reap_interval_seconds", "cleanup_interval_seconds")
    )
    found = []
    if given.get("audit_retention_seconds", SHORTEST_AUDIT) < SHORTEST_AUDIT:
        found.append("audit_retention_seconds must be at least 30 days: newer entries of the audit log cannot be removed")
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


def _readers() -> dict[str, Callable[[Any], Any]]:
    readers: dict[str, Callable[[Any], Any]] = {
        f.name: reader(f.name, str(f.type)) for f in fields(Settings) if f.name not in ("workers", "pools")
    }
    readers.update({f"workers_{f.name}": reader(f.name, str(f.type)) for f in fields(WorkerSettings)})
    return readers


def _pool_readers() -> dict[str, Callable[[Any], Any]]:
    return {f.name: reader(f.name, str(f.type)) for f in fields(WorkerSettings) if f.name not in SHARED}
