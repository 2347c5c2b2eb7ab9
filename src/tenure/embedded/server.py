"""The public class of this package."""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from tenure.embedded import children
from tenure.embedded.account import server_account
from tenure.embedded.binaries import find_binaries
from tenure.embedded.cluster import ensure_cluster, version_of
from tenure.embedded.folders import settle_data, settle_sockets
from tenure.embedded.home import Home
from tenure.embedded.launch import START_PATIENCE, EmbeddedServerOptions, ensure_guardian, launch, shut_down
from tenure.embedded.postmaster import DATABASE, Postmaster, find_postmaster, recorded_postmaster, settled_postmaster
from tenure.embedded.processes import wait_until
from tenure.embedded.relocate import reachable_binaries
from tenure.model.errors import ConfigError

DYING = 0.5  # seconds for which a killed server is still visible but accepts no connections


@dataclass(frozen=True)
class ServerStatus:
    running: bool
    pid: int | None
    holders: tuple[int, ...]
    """The pids of the processes that hold the server."""
    data_dir: Path
    """Outside the home if the server's account cannot reach the home."""
    version: str | None
    """The major version of the data; None before the first start."""
    log: Path


class EmbeddedServer:
    """Holds the server of a home: starts it if it is not running, and stops it at the end if there is no other holder.

    `start()` returns when the server accepts connections, `stop()` when this object no longer holds it. Both may be
    called twice. A server that is already running is shared as it is; `durable` and `settings` are then ignored.
    """

    def __init__(self, home: Path, durable: bool = True, settings: Mapping[str, str] | None = None) -> None:
        self.home = Home(Path(home))
        self.options = EmbeddedServerOptions(durable, dict(settings or {}))
        self._id = uuid4().hex
        self._held_by: int | None = None
        self._dsn: str | None = None

    @property
    def dsn(self) -> str:
        if self._dsn is None:
            raise ConfigError(f"the embedded server in {self.home.folder} is not started: call start() or use `with`")
        return self._dsn

    @property
    def running(self) -> bool:
        children.reap()
        postmaster = find_postmaster(self.home.data)
        return postmaster is not None and postmaster.is_serving

    def status(self) -> ServerStatus:
        children.reap()
        data = self.home.data
        postmaster = find_postmaster(data)
        holders = sorted({holder.pid for holder in self.home.holders.alive()})
        return ServerStatus(
            running=postmaster is not None and postmaster.is_serving,
            pid=postmaster.pid if postmaster else None,
            holders=tuple(holders),
            data_dir=data,
            version=version_of(data),
            log=self.home.log,
        )

    def start(self) -> Self:
        self.home.make()
        children.reap()
        with self.home.lock():
            try:
                self.home.holders.add(self._id)
                self._dsn = self._open_database()
            except BaseException:
                self._release()
                raise
        self._held_by = os.getpid()
        atexit.unregister(self.stop)
        atexit.register(self.stop)
        return self

    def stop(self) -> None:
        # A forked child has inherited this object, but does not hold the server.
        if self._held_by == os.getpid():
            try:
                with self.home.lock():
                    self._release()
            except FileNotFoundError:
                pass  # the home was removed; the guardian stops the server
            self._held_by = None
            self._dsn = None
            atexit.unregister(self.stop)
            children.reap()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _open_database(self) -> str:
        postmaster = self._adopt() or self._launch()
        try:
            _ensure_database(postmaster)
        except ConfigError:
            if not wait_until(lambda: not postmaster.is_alive, DYING):
                raise
            # It was killed while this process joined.
            postmaster = self._launch()
            _ensure_database(postmaster)
        return postmaster.dsn()

    def _adopt(self) -> Postmaster | None:
        postmaster = settled_postmaster(self.home.data, START_PATIENCE)
        if postmaster:
            ensure_guardian(self.home)
        return postmaster

    def _launch(self) -> Postmaster:
        account = server_account(self.home.data)
        binaries = reachable_binaries(find_binaries(), account)
        data = settle_data(self.home, account)
        ensure_cluster(data, binaries, account, durable=self.options.durable)
        crashed = recorded_postmaster(data)
        sockets = settle_sockets(data, account, previous=crashed.sockets if crashed else None)
        # The guardian first: if this process is killed in between, the server is still guarded.
        ensure_guardian(self.home)
        return launch(binaries, self.home, sockets, account, self.options)

    def _release(self) -> None:
        self.home.holders.remove(self._id)
        if not self.home.holders.alive():
            shut_down(self.home.data)


def _ensure_database(postmaster: Postmaster) -> None:
    import psycopg  # noqa: PLC0415 - importing this package must stay fast

    try:
        with psycopg.connect(postmaster.dsn("postgres"), autocommit=True) as connection:
            known = connection.execute("select 1 from pg_database where datname = %s", [DATABASE]).fetchone()
            if known is None:
                connection.execute(f'create database "{DATABASE}"')
                # The role has the name of Tenure's schema. By default, tables of the user's would be created there, and Alembic
                # would take Tenure's tables for the user's.
                connection.execute(f'alter database "{DATABASE}" set search_path = public')
    except psycopg.Error as error:
        raise ConfigError(
            f"the embedded server on {postmaster.data} is running but rejects connections: {error}. See its log, or stop it"
        ) from error
