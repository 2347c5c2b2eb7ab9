"""Flask: settings, the context of handlers, the command, errors."""

from __future__ import annotations

import os
import sys
from uuid import uuid4

import pytest
from flask import Flask, current_app

from tenure import ConfigError, Tenure
from tenure.integrations.flask import FlaskTenure
from tenure.testing import drain_sync
from tests.docs.workshop import as_url
from tests.processes import run_process


@pytest.fixture
def app():
    app = Tenure()

    @app.job(max_attempts=1)
    def in_thread(n: int) -> str:
        return f"{current_app.name} {n}"

    @app.job(max_attempts=1)
    async def on_loop(n: int) -> str:
        return f"{current_app.name} {n}"

    yield app
    app.close_sync()


@pytest.mark.parametrize("config", ["TENURE", "SQLALCHEMY_DATABASE_URI"])
def test_settings_come_from_flask(app, dsn, config):
    flask = Flask("shop")
    uri = as_url(dsn).replace("postgresql:", "postgresql+psycopg:", 1)
    flask.config[config] = {"dsn": dsn} if config == "TENURE" else uri
    FlaskTenure(app, flask)
    with flask.app_context():
        handle = app.jobs["in_thread"].enqueue_sync(1)
    assert app.client().find_sync(handle.id).state == "pending"
    assert flask.extensions["tenure"].app is app


def test_handlers_have_the_context_of_the_application(app, dsn):
    flask = Flask("shop")
    flask.config["TENURE"] = {"dsn": dsn}
    FlaskTenure(app).init_app(flask)
    app.jobs["in_thread"].enqueue_sync(1)
    app.jobs["on_loop"].enqueue_sync(2)
    assert sorted(run.output for run in drain_sync(app)) == ["shop 1", "shop 2"]


def test_a_worker_makes_the_application_by_its_factory(app, dsn, tmp_path, monkeypatch):
    (tmp_path / "flask_factory.py").write_text("from flask import Flask\ndef create_app():\n    return Flask('made')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    app.configure(dsn=dsn)
    FlaskTenure(app, create="flask_factory:create_app")
    app.jobs["in_thread"].enqueue_sync(1)
    assert [run.output for run in drain_sync(app)] == ["made 1"]


def test_a_worker_without_an_application_says_so(app, dsn):
    app.configure(dsn=dsn, log_dead_letter="debug", log_failed_attempt="debug")
    FlaskTenure(app)
    app.jobs["in_thread"].enqueue_sync(1)
    [run] = drain_sync(app)
    assert ConfigError.__name__ in run.error
    assert "name your factory" in run.error


def test_errors_that_a_request_causes_are_answered(app, dsn):
    flask = Flask("shop")
    flask.config["TENURE"] = {"dsn": dsn}
    FlaskTenure(app, flask)

    @flask.get("/jobs/<job_id>")
    def status(job_id: str) -> str:
        return app.client().handle(job_id).status_sync().state

    answer = flask.test_client().get(f"/jobs/{uuid4()}")
    assert (answer.status_code, list(answer.json)) == (404, ["detail"])
    assert flask.test_client().get("/jobs/nonsense").status_code == 404


def test_commands_run_with_the_settings_of_the_application(dsn, tmp_path):
    (tmp_path / "shop.py").write_text(
        f"""
from flask import Flask
from tenure import Tenure
from tenure.integrations.flask import FlaskTenure

tenure = Tenure()

@tenure.job
def work() -> None: ...

def create_app():
    flask = Flask("shop")
    flask.config["TENURE"] = {{"dsn": {as_url(dsn)!r}}}
    FlaskTenure(tenure, flask)
    return flask
"""
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}
    command = [sys.executable, "-m", "flask", "--app", "shop", "tenure"]
    done = run_process([*command, "enqueue", "work", "--json"], cwd=tmp_path, env=env, timeout=60)
    assert done.returncode == 0, done.stderr
    listed = run_process([*command, "jobs", "list", "--kind", "work"], cwd=tmp_path, env=env, timeout=60)
    assert "pending" in listed.stdout, listed.stderr
