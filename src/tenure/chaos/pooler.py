"""PgBouncer in transaction mode in front of the server, if it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")

SETTINGS = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {size}
max_client_conn = {clients}
server_lifetime = 30
ignore_startup_parameters = extra_float_digits
"""


class Pooler:
    """For an embedded server, whose user needs no password."""

    def __init__(self, server_dsn: str, folder: Path, size: int = 5, clients: int = 200, user: str | None = None) -> None:
        """`user`: if another than that of the DSN."""
        self._server = conninfo_to_dict(server_dsn)
        if user is not None:
            self._server["user"] = user
        self._port = free_port()
        self._settings = folder / "pgbouncer.ini"
        # With auth_type = any, the user on the server is the one named here.
        server = {name: self._server[name] for name in ("host", "port", "user")}
        self._settings.write_text(SETTINGS.format(**server, listen_port=self._port, size=size, clients=clients), "utf-8")
        folder.chmod(0o755)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        return make_conninfo("", host="127.0.0.1", port=self._port, dbname=self._server["dbname"], user=self._server["user"])

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Does nothing if it runs: a second one could not listen, and the first one would never be killed."""
        assert PGBOUNCER is not None
        if self.runs:
            return
        sockets = Path(str(self._server["host"]))
        # It refuses to run as root, and must be able to reach the server's socket.
        run_as = ["-u", sockets.owner() if sockets.is_dir() else "nobody"] if os.geteuid() == 0 else []
        with self._settings.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen([PGBOUNCER, *run_as, str(self._settings)], stdout=log, stderr=log)

    @property
    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
