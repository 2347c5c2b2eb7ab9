"""Two embedded servers: a primary, and a standby that follows it by streaming replication until it is cut off."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tenure.embedded import EmbeddedServer, find_binaries
from tenure.embedded.account import server_account
from tenure.embedded.folders import settle_data
from tenure.embedded.home import MARKER
from tenure.embedded.relocate import reachable_binaries
from tenure.model.errors import ConfigError

SETTINGS = {"max_connections": "200", "max_wal_size": "1GB", "wal_keep_size": "256MB"}
STANDBY_TIMEOUT = 20.0  # seconds for the standby to follow, and to stop following
CHECK_EVERY = 0.02

RECEIVER = "select count(*) from pg_stat_wal_receiver"
RECEIVED = "select coalesce(pg_last_wal_receive_lsn(), '0/0') >= %s"


@dataclass(frozen=True, slots=True)
class FailoverTimes:
    """Commits that were answered between `since` and `killed` may be missing on the new primary; earlier ones are not."""

    since: float
    killed: float
    promoted: float
    first: str
    """The position in the WAL up to which the standby had everything."""
    last: str
    """The last known position of the old primary."""


class ReplicatedServers:
    def __init__(self, folder: Path) -> None:
        self._servers = [EmbeddedServer(folder / name, settings=SETTINGS) for name in ("a", "b")]
        self._primary = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self.primary)
        self.build_standby()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    @property
    def primary(self) -> EmbeddedServer:
        return self._servers[self._primary]

    @property
    def standby(self) -> EmbeddedServer:
        return self._servers[1 - self._primary]

    @property
    def dsn(self) -> str:
        """Names both servers, always in the same order."""
        parts = [conninfo_to_dict(server.dsn) for server in self._servers]
        hosts, ports = (",".join(str(part[name]) for part in parts) for name in ("host", "port"))
        return make_conninfo(
            "", host=hosts, port=ports, user=parts[0]["user"], dbname=parts[0]["dbname"], target_session_attrs="read-write"
        )

    def build_standby(self) -> None:
        """Makes the other server a standby, from a copy of the primary."""
        server = self.standby
        server.stop()
        server.home.make()
        account = server_account(self.primary.home.data)
        data = settle_data(server.home, account)
        shutil.rmtree(data, ignore_errors=True)
        # This process, as root, wrote this file, and the account of the server must be able to copy it.
        (self.primary.home.data / MARKER).chmod(0o644)
        draft = Path(tempfile.mkdtemp(prefix="copy-", dir=data.parent))
        account.own(draft)
        program = reachable_binaries(find_binaries(), account).program("pg_basebackup")
        source = make_conninfo(self.primary.dsn, dbname="replication", application_name="standby")
        done, output = account.run([program, "-d", source, "-D", draft, "-R", "-X", "stream", "-c", "fast", "--no-sync"])
        if not done:
            shutil.rmtree(draft, ignore_errors=True)
            raise ConfigError(f"pg_basebackup failed: {output.strip()}. The failover campaign needs a server that can be copied")
        draft.rename(data)
        self._stack.enter_context(server)

    async def fail_over(self, lag: float, down: float) -> FailoverTimes:
        """Stops replication, kills the primary after `lag` seconds, and promotes the standby after `down` more seconds."""
        since, first = await self._caught_up()
        await self._cut_off()
        await asyncio.sleep(lag)
        last = _fetch(self.primary.dsn, "select pg_current_wal_lsn()::text")
        pid = self.primary.status().pid
        assert pid is not None
        os.kill(pid, signal.SIGQUIT)
        killed = time.time()
        await asyncio.sleep(down)
        _fetch(self.standby.dsn, "select pg_promote(wait => true)")
        self._primary = 1 - self._primary
        return FailoverTimes(since, killed, time.time(), first, last)

    async def _caught_up(self) -> tuple[float, str]:
        """A time and a WAL position: everything that was committed before is on the standby."""
        since = time.time()
        position = _fetch(self.primary.dsn, "select pg_current_wal_flush_lsn()::text")
        await self._until(RECEIVED, position)
        return since, position

    async def _cut_off(self) -> None:
        with psycopg.connect(self.standby.dsn, autocommit=True) as connection:
            connection.execute("alter system set primary_conninfo = ''")
            connection.execute("select pg_reload_conf()")
        await self._until(f"select ({RECEIVER}) = 0")

    async def _until(self, statement: str, *values: object) -> None:
        deadline = time.monotonic() + STANDBY_TIMEOUT
        while not _fetch(self.standby.dsn, statement, *values):
            if time.monotonic() > deadline:
                raise ConfigError(f"the standby did not follow, or did not stop to, within {STANDBY_TIMEOUT:g} s: {statement}")
            await asyncio.sleep(CHECK_EVERY)


def _fetch(dsn: str, statement: str, *values: object) -> Any:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(statement.encode(), values or None).fetchone()
    return None if row is None else row[0]
