"""A program without a DSN finds the server that runs for its project, and no other."""

import logging
import os
import shutil

import psycopg
import pytest

from tenure import ConfigError, Tenure
from tenure.embedded import EmbeddedServer
from tenure.embedded.finding import home_of_sockets, known_home, note_home, running_server
from tenure.settings import Settings


@pytest.fixture
def project(home, reachable):
    """A folder whose `.tenure` is a home that exists already: making one takes seconds."""
    folder = reachable / "project"
    (folder / "web" / "views").mkdir(parents=True)
    (folder / ".tenure").symlink_to(home)
    return folder


def test_it_is_found_from_the_folder_and_from_below_while_it_runs(project, home, caplog):
    caplog.set_level(logging.INFO, "tenure")
    inner = project / "web" / "views"
    assert running_server(inner) is None
    with EmbeddedServer(home, durable=False) as server:
        for folder in (project, inner):
            settings, sources = Settings.explained([], folder=folder, environ={})
            assert settings.dsn == server.dsn
            assert sources["dsn"] == f"the embedded server in {project / '.tenure'}"
        with psycopg.connect(settings.database.dsn) as connection:
            assert connection.execute("select current_database()").fetchone() == ("tenure",)
        assert running_server(project.parent) is None
        assert Settings.load(folder=inner, environ={"TENURE_DSN": "postgresql://db/x"}).dsn == "postgresql://db/x"
        assert Settings.load(folder=inner, environ={}, embedded=False).dsn is None
    assert running_server(inner) is None
    assert len([record for record in caplog.records if "using the embedded PostgreSQL" in record.message]) == 1


def test_an_app_that_was_made_before_the_server_ran_finds_it_later(project, home, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("TENURE_", "PG", "DATABASE_URL"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(project)
    app = Tenure()
    with pytest.raises(ConfigError, match="no database is set"):
        _ = app.settings.database
    with EmbeddedServer(home, durable=False) as server:
        assert app.settings.database.dsn == server.dsn


def test_a_server_whose_home_is_elsewhere_is_found_by_a_note(home, reachable):
    folder = reachable / "elsewhere"
    folder.mkdir()
    note = note_home(folder, home)
    assert running_server(folder) is None
    with EmbeddedServer(home, durable=False) as server:
        found = running_server(folder)
        assert found is not None
        assert found.dsn == server.dsn
        note.unlink()
        assert running_server(folder) is None


def test_a_folder_that_tenure_did_not_make_is_not_trusted(reachable, home):
    folder = reachable / "strange"
    shutil.copytree(home, folder / ".tenure", symlinks=True, ignore=shutil.ignore_patterns("TENURE_EMBEDDED", "pg", "run"))
    assert known_home(folder) is None
    (folder / ".tenure-demo").write_text(str(folder / ".tenure"))
    assert running_server(folder) is None


def test_the_home_of_a_socket_is_known_while_the_server_is_away(project, home):
    run = home.resolve() / "run"
    assert home_of_sockets(run, project / "web") == project / ".tenure"
    assert home_of_sockets(project, project) is None
