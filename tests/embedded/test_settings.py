import sys

import psycopg
import pytest

from tenure.embedded import EmbeddedServer, binaries, find_binaries
from tenure.embedded.launch import GUARDIAN
from tenure.model.errors import ConfigError
from tests.processes import run_process

from .conftest import SOURCE

LOSABLE = ("fsync", "synchronous_commit", "full_page_writes")


def shown(server, *names):
    with psycopg.connect(server.dsn) as connection:
        return [connection.execute(f"show {name}").fetchone()[0] for name in names]


@pytest.mark.parametrize(("durable", "expected"), [(True, "on"), (False, "off")])
def test_durable_decides_about_syncing(home, durable, expected):
    with EmbeddedServer(home, durable=durable, settings={"work_mem": "7MB"}) as server:
        assert shown(server, *LOSABLE) == [expected] * 3
        assert shown(server, "work_mem", "max_connections") == ["7MB", "200"]


def test_other_settings_share_the_server_as_it_is(home):
    with EmbeddedServer(home, durable=False), EmbeddedServer(home, settings={"work_mem": "7MB"}) as second:
        assert shown(second, "fsync", "work_mem") == ["off", "4MB"]


def test_tables_of_the_user_are_not_created_in_the_schema_of_tenure(home):
    with EmbeddedServer(home, durable=False) as server, psycopg.connect(server.dsn) as connection:
        connection.execute("create schema tenure")
        assert connection.execute("select current_user, current_schema()").fetchone() == ("tenure", "public")


def test_settings_that_would_open_the_server_are_refused(reachable):
    with pytest.raises(ConfigError, match="Listen-Addresses, port"):
        EmbeddedServer(reachable, settings={"port": "1", "Listen-Addresses": "*"})


def test_the_dsn_of_a_server_not_started_is_an_error(reachable):
    with pytest.raises(ConfigError, match=r"call start\(\)"):
        _ = EmbeddedServer(reachable / "home").dsn
    assert not EmbeddedServer(reachable / "home").status().running
    assert not (reachable / "home").exists()


def test_the_wheel_is_found_without_importing_it():
    found = find_binaries()
    assert found.major >= 14
    assert found.program("postgres").is_file()
    assert binaries.WHEEL not in sys.modules


@pytest.mark.parametrize(
    ("version", "reason"), [(None, "has no program postgres"), ("13.9", "13.9, 14 or newer"), ("", "print its version")]
)
def test_a_wrong_setting_is_an_error_not_a_reason_to_look_elsewhere(reachable, monkeypatch, version, reason):
    for name in ("postgres", "initdb") if version is not None else ():
        (reachable / name).write_text(f"#!/bin/sh\necho '{version and f'postgres (PostgreSQL) {version}'}'\n")
        (reachable / name).chmod(0o755)
    monkeypatch.setenv("TENURE_PG_BIN", str(reachable))
    with pytest.raises(ConfigError, match=f"{reason}.*unset it"):
        EmbeddedServer(reachable / "home").start()
    assert not (reachable / "home" / "pg").exists()


def test_without_any_postgresql_the_error_lists_the_remedies(monkeypatch):
    monkeypatch.delenv("TENURE_PG_BIN", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(binaries, "WHEEL", "no_such_wheel")
    monkeypatch.setattr(binaries, "SYSTEM_PATTERNS", ())
    with pytest.raises(ConfigError, match=r"pg_config.*tenure\[embedded\].*TENURE_PG_BIN.*TENURE_DSN"):
        find_binaries()


def test_the_guardian_needs_the_standard_library_only(reachable):
    command = [sys.executable, "-I", "-S", GUARDIAN, reachable / "missing"]
    ended = run_process(command, check=True)
    assert ended.stderr.endswith("missing\n")


def test_importing_the_package_imports_no_driver():
    code = "import sys, types\nbare = types.ModuleType('tenure')\nbare.__path__ = [sys.argv[1]]\n"
    code += "sys.modules['tenure'] = bare\nimport tenure.embedded\nprint('psycopg' in sys.modules)"
    command = [sys.executable, "-c", code, SOURCE / "tenure"]
    assert run_process(command, check=True).stdout == "False\n"
