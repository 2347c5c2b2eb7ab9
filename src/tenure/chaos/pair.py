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
from tenure.embedded.home import MARKER
from tenure.embedded.place import settle_data
from tenure.embedded.relocate import reachable_binaries
from tenure.model.errors import ConfigError

SETTINGS = {"max_connections": "200", "max_wal_size": "1GB", "wal_keep_size": "256MB"}
PATIENCE = 20.0  # seconds for the standby to follow, and to stop following
LOOK_EVERY = 0.02

RECEIVER = "select count(*) from pg_stat_wal_receiver"
RECEIVED = "select coalesce(pg_last_wal_receive_lsn(), '0/0') >= %s"


@dataclass(frozen=True, slots=True)
class Lost:
    """What was committed on the old primary and is not on the new one: nothing that was answered before `since`."""

    since: float
    killed: float
    promoted: float
    first: str
    """The position in the log up to which the standby had everything."""
    last: str


class Pair:
    def __init__(self, folder: Path) -> None:
        self._servers = [EmbeddedServer(folder / name, settings=SETTINGS) for name in ("a", "b")]
        self._leads = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self.primary)
        self.follow()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    @property
    def primary(self) -> EmbeddedServer:
        return self._servers[self._leads]

    @property
    def standby(self) -> EmbeddedServer:
        return self._servers[1 - self._leads]

    @property
    def dsn(self) -> str:
        """Names both servers, in the same order whoever leads."""
        parts = [conninfo_to_dict(server.dsn) for server in self._servers]
        hosts, ports = (",".join(str(part[name]) for part in parts) for name in ("host", "port"))
        return make_conninfo(
            "", host=hosts, port=ports, user=parts[0]["user"], dbname=parts[0]["dbname"], target_session_attrs="read-write"
        )

    def follow(self) -> None:
        """Makes a standby out of the server that does not lead, from a copy of the one that does."""
        server = self.standby
        server.stop()
        server.home.make()
        account = server_account(self.primary.home.data)
        data = settle_data(server.home, account)
        shutil.rmtree(data, ignore_errors=True)
        # As root we wrote this file, and the account of the server must be able to copy it.
        (self.primary.home.data / MARKER).chmod(0o644)
        draft = Path(tempfile.mkdtemp(prefix="copy-", dir=data.parent))
        account.own(draft)
        program = reachable_binaries(find_binaries(), account).program("pg_basebackup")
        source = make_conninfo(self.primary.dsn, dbname="replication", application_name="standby")
        done, said = account.run([program, "-d", source, "-D", draft, "-R", "-X", "stream", "-c", "fast", "--no-sync"])
        if not done:
            shutil.rmtree(draft, ignore_errors=True)
            raise ConfigError(f"pg_basebackup failed: {said.strip()}. The failover needs a server that can be copied")
        draft.rename(data)
        self._stack.enter_context(server)

    async def fail_over(self, lag: float, away: float) -> Lost:
        """The standby stops following; after `lag` seconds the primary is killed, and after `away` more the standby leads."""
        since, first = await self._caught_up()
        await self._cut_off()
        await asyncio.sleep(lag)
        last = _ask(self.primary.dsn, "select pg_current_wal_lsn()::text")
        pid = self.primary.status().pid
        assert pid is not None
        os.kill(pid, signal.SIGQUIT)
        killed = time.time()
        await asyncio.sleep(away)
        _ask(self.standby.dsn, "select pg_promote(wait => true)")
        self._leads = 1 - self._leads
        return Lost(since, killed, time.time(), first, last)

    async def _caught_up(self) -> tuple[float, str]:
        """A moment, and a position in the log: whatever was committed before is on the standby."""
        since = time.time()
        position = _ask(self.primary.dsn, "select pg_current_wal_flush_lsn()::text")
        await self._until(RECEIVED, position)
        return since, position

    async def _cut_off(self) -> None:
        with psycopg.connect(self.standby.dsn, autocommit=True) as connection:
            connection.execute("alter system set primary_conninfo = ''")
            connection.execute("select pg_reload_conf()")
        await self._until(f"select ({RECEIVER}) = 0")

    async def _until(self, statement: str, *values: object) -> None:
        deadline = time.monotonic() + PATIENCE
        while not _ask(self.standby.dsn, statement, *values):
            if time.monotonic() > deadline:
                raise ConfigError(f"the standby does not follow, or does not stop to: {statement}")
            await asyncio.sleep(LOOK_EVERY)


def _ask(dsn: str, statement: str, *values: object) -> Any:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(statement.encode(), values or None).fetchone()
    return None if row is None else row[0]
