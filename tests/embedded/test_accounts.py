"""Root runs the server as another account; a normal user runs it as itself."""

import os
import pwd
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tenure.embedded import Binaries, EmbeddedServer, find_binaries, relocate
from tenure.embedded.account import server_account
from tenure.model.errors import ConfigError

from .conftest import SEARCH_PATH, HolderProcess, processes_naming, status, until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]


def permissions(folder):
    return [(str(path), path.stat().st_mode, path.stat().st_uid, path.stat().st_gid) for path in (folder, *folder.parents)]


@pytest.fixture
def closed(reachable):
    folder = reachable / "closed"
    folder.mkdir(mode=0o700)
    return folder


def test_root_runs_the_server_as_an_unprivileged_account(home):
    with EmbeddedServer(home, durable=False) as server:
        owner = Path(f"/proc/{server.status().pid}").stat().st_uid
        assert pwd.getpwuid(owner).pw_name in {"postgres", "nobody"}


def test_a_home_out_of_reach_keeps_its_data_elsewhere_and_opens_nothing(closed, caplog):
    caplog.set_level("INFO", "tenure.embedded")
    before = permissions(closed)
    state_parent_is_new = not Path("/var/lib/tenure").exists()
    with EmbeddedServer(closed / "home", durable=False) as server:
        data = server.status().data_dir
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("create table kept ()")
    try:
        assert not data.is_relative_to(closed)
        assert [record.folder for record in caplog.records if "stored elsewhere" in record.getMessage()] == [str(data)]
        assert permissions(closed) == before
        assert data.parent.stat().st_uid == 0
        with EmbeddedServer(closed / "home", durable=False) as server, psycopg.connect(server.dsn) as connection:
            connection.execute("table kept")
        until(lambda: not processes_naming(data))
    finally:
        shutil.rmtree(data.parent)
        if state_parent_is_new:
            data.parent.parent.rmdir()


def test_binaries_out_of_reach_are_copied_once_and_safely(closed, reachable, home, monkeypatch):
    install = find_binaries().folder.parent
    if not (install / "share").is_dir():
        pytest.skip("these binaries cannot be moved")
    package = closed / install.parent.name
    shutil.copytree(install, package / install.name, ignore=shutil.ignore_patterns("include"))
    libraries = install.parent.with_name(install.parent.name + ".libs")
    if libraries.is_dir():
        shutil.copytree(libraries, closed / libraries.name)
    monkeypatch.setenv("TENURE_PG_BIN", str(package / install.name / "bin"))
    # The real cache of this machine is none of a test's business.
    cache = reachable / "cache"
    monkeypatch.setattr(relocate, "cache_folders", lambda: [cache] * relocate.make_trusted(cache))
    reachable.chmod(0o755)
    before = permissions(package / install.name / "bin")

    account = server_account(home / "pg")
    with ThreadPoolExecutor(3) as pool:
        copies = set(pool.map(lambda _: relocate.reachable_binaries(find_binaries(), account), range(3)))
    assert len(copies) == 1
    assert len(list(cache.iterdir())) == 1
    with EmbeddedServer(home, durable=False) as server:
        assert processes_naming(cache, home / "pg") == [server.status().pid]
    assert permissions(package / install.name / "bin") == before
    for path in cache.rglob("*"):
        assert (path.lstat().st_uid, path.lstat().st_mode & 0o022) == (0, 0)


def test_a_cache_that_another_account_could_fill_is_not_trusted(reachable):
    (reachable / "planted").mkdir()
    os.chown(reachable / "planted", 65534, 65534)
    (reachable / "link").symlink_to("/usr")
    (reachable / "open").mkdir()
    (reachable / "open").chmod(0o777)
    trusted = {name: relocate.make_trusted(reachable / name) for name in ("planted", "link", "open", "open/inner", "mine")}
    assert trusted == {"planted": False, "link": False, "open": False, "open/inner": False, "mine": True}


def test_binaries_that_cannot_be_moved_are_refused_with_a_way_out(closed, home):
    (closed / "bin").mkdir()
    with pytest.raises(ConfigError, match=r"cannot run the programs.*TENURE_PG_BIN"):
        relocate.reachable_binaries(Binaries(closed / "bin", "18.0"), server_account(home / "pg"))


def test_a_home_of_another_user_is_refused(reachable):
    (reachable / "theirs").mkdir()
    os.chown(reachable / "theirs", 65534, 65534)
    with pytest.raises(ConfigError, match=r"belongs to another user.*choose another home"):
        EmbeddedServer(reachable / "theirs").start()


def test_a_normal_user_runs_everything_as_itself(reachable):
    nobody = pwd.getpwnam("nobody")
    home = reachable / "nobody" / "home"
    home.parent.mkdir()
    os.chown(home.parent, nobody.pw_uid, nobody.pw_gid)
    options = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": "/"}
    options["env"] = {"PYTHONPATH": SEARCH_PATH, "PYTHONDONTWRITEBYTECODE": "1"}
    python = python_for(options)
    holder = HolderProcess(home, python=python, **options).ready()
    try:
        assert Path(f"/proc/{status(home).pid}").stat().st_uid == nobody.pw_uid
        assert (home / "pg").stat().st_uid == nobody.pw_uid
        assert home.stat().st_mode & 0o777 == 0o700
    finally:
        holder.leave()
    assert not processes_naming("/postgres", home)


def python_for(options):
    """An interpreter of this version that the account can run, with our packages."""
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}", "/usr/local/bin/python3"):
        environment = {**os.environ, **options["env"]}
        try:
            subprocess.run([python, "-c", "import psycopg"], check=True, capture_output=True, **{**options, "env": environment})
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    pytest.skip("no interpreter that another account can run")
