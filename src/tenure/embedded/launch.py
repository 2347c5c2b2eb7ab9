"""Starts PostgreSQL and its guardian, and stops PostgreSQL. The caller holds the home's lock."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tenure.embedded import children
from tenure.embedded.account import Account
from tenure.embedded.binaries import Binaries
from tenure.embedded.folders import PORT, clear_sockets, remove_temporary_sockets
from tenure.embedded.home import Home, open_lock, try_lock
from tenure.embedded.postmaster import Postmaster, disown_stale_pid, find_postmaster, stop_postmaster
from tenure.model.errors import ConfigError

log = logging.getLogger("tenure.embedded")

START_PATIENCE = 60.0  # seconds; crash recovery of a busy server takes time
GUARDIAN = Path(__file__).with_name("run_guardian.py")
DEFAULTS = {"shared_buffers": "128MB", "max_connections": "200"}
FAST_BUT_LOSABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
RESERVED = {  # they keep the server private and at the expected path
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "logging_collector",
    "port",
    "unix_socket_directories",
    "unix_socket_group",
    "unix_socket_permissions",
}


@dataclass(frozen=True)
class EmbeddedServerOptions:
    durable: bool
    settings: Mapping[str, str]

    def __post_init__(self) -> None:
        taken = sorted(name for name in self.settings if name.lower().replace("-", "_") in RESERVED)
        if taken:
            raise ConfigError(f"an embedded server sets {', '.join(taken)} itself: leave that out, or use your own server")

    def arguments(self, sockets: Path) -> list[str]:
        options = {
            **DEFAULTS,
            **({} if self.durable else FAST_BUT_LOSABLE),
            **self.settings,
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": str(sockets),
            "unix_socket_permissions": "0700",
            "logging_collector": "off",
        }
        return [word for name, value in options.items() for word in ("-c", f"{name}={value}")]


def launch(binaries: Binaries, home: Home, sockets: Path, account: Account, options: EmbeddedServerOptions) -> Postmaster:
    disown_stale_pid(home.data)
    clear_sockets(sockets)
    command: list[str | Path] = [binaries.program("postgres"), "-D", home.data, *options.arguments(sockets)]
    deadline = time.monotonic() + START_PATIENCE
    while True:
        began = home.rotated_log_size()
        postgres = _spawn(command, home, account)
        started = _await_serving(postgres, home.data, deadline)
        if started:
            facts = {"version": binaries.version, "folder": str(home.data), "server_pid": started.pid}
            log.debug("PostgreSQL started", extra=facts)
            return started
        output = home.log_since(began)
        if "is still in use" not in output or time.monotonic() >= deadline:
            raise ConfigError(
                f"PostgreSQL did not start (exit status {postgres.returncode}); {home.log} ends:\n"
                f"{output or '(nothing was written)'}\nFix the cause and start again"
            )
        # Orphaned processes of a server that was killed are still ending.
        time.sleep(0.1)


def shut_down(data: Path) -> None:
    """Only if there is no holder."""
    postmaster = find_postmaster(data)
    if postmaster:
        stop_postmaster(postmaster)
        remove_temporary_sockets(postmaster.sockets)
        log.debug("PostgreSQL stopped", extra={"folder": str(data)})


def ensure_guardian(home: Home) -> None:
    with open_lock(home.guardian_lock) as descriptor:
        if not try_lock(descriptor):
            return
    with home.open_log() as output:
        guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", GUARDIAN, home.folder],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    children.keep(guardian)


def _spawn(command: list[str | Path], home: Home, account: Account) -> subprocess.Popen[bytes]:
    try:
        with home.open_log() as output:
            postgres = account.popen(command, output.fileno())
    except OSError as error:
        raise ConfigError(
            f"cannot run {command[0]} as {account.name}: {error}. Set TENURE_PG_BIN to another PostgreSQL"
        ) from error
    children.keep(postgres)
    return postgres


def _await_serving(postgres: subprocess.Popen[bytes], data: Path, deadline: float) -> Postmaster | None:
    while postgres.poll() is None:
        found = find_postmaster(data)
        if found and found.pid == postgres.pid and found.is_serving:
            return found
        if time.monotonic() >= deadline:
            postgres.send_signal(signal.SIGQUIT)
            postgres.wait()
        time.sleep(0.01)
    return None
