"""A DSN with several hosts, of which the first is a standby."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tenure import Tenure
from tenure.embedded import EmbeddedServer
from tests.worker.serving import serving


@pytest.fixture
def standby(dsn):
    """A server in recovery with a database of the same name: it answers, and takes no writes."""
    name = conninfo_to_dict(dsn)["dbname"]
    folder = Path(tempfile.mkdtemp(prefix="standby-"))
    folder.chmod(0o711)
    server = EmbeddedServer(folder / "home", durable=False)
    try:
        with psycopg.connect(server.start().dsn, autocommit=True) as connection:
            connection.execute(f"create database {name}")
            [(data,)] = connection.execute("show data_directory").fetchall()
        server.stop()
        (Path(data) / "standby.signal").touch()
        yield make_conninfo(server.start().dsn, dbname=name)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def both(first, second):
    """One DSN for two servers."""
    parts = [conninfo_to_dict(dsn) for dsn in (first, second)]
    hosts, ports = (",".join(str(part[name]) for part in parts) for name in ("host", "port"))
    return make_conninfo(second, host=hosts, port=ports)


async def test_of_two_hosts_the_one_that_takes_writes_is_used(standby, dsn):
    with psycopg.connect(standby) as connection:
        assert connection.execute("select pg_is_in_recovery()").fetchall() == [(True,)]
    app = Tenure(both(standby, dsn))

    @app.job
    async def work(n: int) -> int:
        return n

    async with serving(app):
        assert await (await work.enqueue(1)).result(timeout=30) == 1
    await app.close()
