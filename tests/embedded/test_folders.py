import os
import shutil
import signal
from pathlib import Path

import psycopg
import pytest

from tenure.embedded import EmbeddedServer
from tenure.model.errors import ConfigError

from .conftest import processes_naming, until


def names_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_new_home_is_marked_and_kept_out_of_git(home):
    assert (home / ".gitignore").read_text() == "*\n"
    assert (home / "TENURE_EMBEDDED").is_file()
    assert (home / "pg" / "TENURE_EMBEDDED").is_file()


def test_a_foreign_home_is_refused_untouched(reachable):
    (reachable / "project").mkdir()
    (reachable / "project" / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match=r"not made by Tenure.*choose an empty"):
        EmbeddedServer(reachable / "project").start()
    assert names_in(reachable / "project") == ["thesis.txt"]


def test_a_foreign_data_folder_is_refused_untouched(reachable, home):
    shutil.copytree(home, reachable / "home", ignore=shutil.ignore_patterns("pg"))
    (reachable / "home" / "pg").mkdir()
    (reachable / "home" / "pg" / "PG_VERSION").write_text("18\n")
    with pytest.raises(ConfigError, match="not made by Tenure"):
        EmbeddedServer(reachable / "home").start()
    assert names_in(reachable / "home" / "pg") == ["PG_VERSION"]


def test_a_file_in_place_of_the_home_is_refused(reachable):
    (reachable / "file").touch()
    with pytest.raises(ConfigError, match="Choose another home"):
        EmbeddedServer(reachable / "file").start()


def test_data_of_another_major_version_is_refused(home):
    version = (home / "pg" / "PG_VERSION").read_text()
    (home / "pg" / "PG_VERSION").write_text("12\n")
    with pytest.raises(ConfigError, match=r"made by PostgreSQL 12.*TENURE_PG_BIN.*pg_upgrade"):
        EmbeddedServer(home).start()
    (home / "pg" / "PG_VERSION").write_text(version)


@pytest.fixture(params=["x" * 100, "a, b & c+d 50%é"], ids=["deep", "odd"])
def unfit(request, reachable, home):
    """The same home under a path that no socket can have."""
    moved = home.rename(reachable / request.param)
    yield moved
    until(lambda: not processes_naming(moved))
    moved.rename(home)


def test_a_path_unfit_for_sockets_uses_a_short_private_folder(unfit):
    with EmbeddedServer(unfit, durable=False) as server, psycopg.connect(server.dsn) as connection:
        sockets = connection.execute("show unix_socket_directories").fetchone()[0]
        found = Path(sockets).stat()
        assert found.st_mode & 0o777 == 0o700
        assert found.st_uid == (unfit / "pg").stat().st_uid
    assert not Path(sockets).exists(), "a temporary folder goes with its server"


def test_a_crash_does_not_pile_up_temporary_folders(unfit):
    with EmbeddedServer(unfit, durable=False) as server:
        first = server.dsn
        os.kill(server.status().pid, signal.SIGKILL)
        until(lambda: not server.running)
        assert server.start().dsn == first


def test_a_killed_initdb_is_repeated(reachable, hold):
    home = reachable / "home"
    interrupted = hold(home)
    until(lambda: list(home.glob("pg.new-*/PG_VERSION")))
    for initdb in processes_naming("/initdb", home):
        os.kill(initdb, signal.SIGKILL)
    interrupted.kill()
    assert not (home / "pg").exists()
    with EmbeddedServer(home, durable=False) as server:
        psycopg.connect(server.dsn).close()
    assert not list(home.glob("pg.new-*"))


def test_only_the_owner_reaches_the_server(home):
    with EmbeddedServer(home, durable=False) as server, psycopg.connect(server.dsn) as connection:
        assert (home / "run").stat().st_mode & 0o777 == 0o700
        assert connection.execute("show listen_addresses").fetchone() == ("",)
        assert connection.execute("show unix_socket_permissions").fetchone() == ("0700",)
    assert (home / "server.log").stat().st_mode & 0o777 == 0o600
