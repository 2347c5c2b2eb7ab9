"""Flask: settings, the context of handlers, the command, errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from flask import Flask, current_app
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import text

from tenure import ConfigError, Context, Tenure
from tenure.integrations.flask import FlaskTenure
from tenure.testing import drain_sync
from tests.docs.page_runner import as_url
from tests.processes import run_process
from tests.waiting import until


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


@pytest.fixture
def orders(app, dsn, sql):
    """Flask-SQLAlchemy, with a pool of one connection, and jobs that write with its session."""
    sql("create table orders (id serial primary key, label text not null)")
    flask = Flask("shop")
    flask.config["SQLALCHEMY_DATABASE_URI"] = as_url(dsn).replace("postgresql:", "postgresql+psycopg:", 1)
    flask.config["SQLALCHEMY_ENGINE_OPTIONS"] = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 20}
    db = SQLAlchemy(flask)
    FlaskTenure(app, flask)
    insert = text("insert into orders (label) values (:label)")

    @app.job(max_attempts=1)
    def write(label: str) -> None:
        db.session.execute(insert, {"label": label})
        db.session.commit()

    @app.job(max_attempts=1)
    async def read_on_loop() -> int:
        return db.session.execute(text("select count(*) from orders")).scalar_one()

    @app.job(max_attempts=1)
    def leave_open(label: str) -> None:
        db.session.execute(insert, {"label": label})

    @app.job(max_attempts=1)
    def write_once(ctx: Context, label: str) -> None:
        with ctx.transaction(db.session):
            db.session.execute(insert, {"label": label})

    with flask.app_context():
        yield SimpleNamespace(
            flask=flask, db=db, labels=lambda: [label for (label,) in sql("select label from orders order by id")]
        )
        db.session.remove()
        db.engine.dispose()


def test_handlers_write_with_flask_sqlalchemy_and_give_the_connection_back(app, orders):
    for label in ("one", "two", "three"):
        app.jobs["write"].enqueue_sync(label)
    app.jobs["leave_open"].enqueue_sync("never committed")
    app.jobs["read_on_loop"].enqueue_sync()
    app.jobs["write_once"].enqueue_sync("four")
    # The pool has one connection: a handler that kept it would make the others wait for it, and fail.
    runs = drain_sync(app, concurrency=1)
    assert [(run.kind, run.state, run.error) for run in runs if run.state != "completed"] == []
    assert orders.labels() == ["one", "two", "three", "four"]
    assert orders.db.engine.pool.checkedout() == 0


def test_a_job_is_part_of_the_session_s_transaction(app, orders, sql):
    session = orders.db.session
    for end in (session.rollback, session.commit):
        session.execute(text("insert into orders (label) values ('one')"))
        app.jobs["in_thread"].using(conn=session).enqueue_sync(1)
        end()
        assert len(orders.labels()) == sql("select count(*) from tenure.jobs")[0][0] == (end == session.commit)


SHOP = """
import datetime
from flask import Flask
from tenure import Tenure
from tenure.integrations.flask import FlaskTenure

tenure = Tenure()

@tenure.job
def work() -> None: ...

def create_app():
    flask = Flask("shop")
    flask.config["TENURE"] = SETTINGS
    FlaskTenure(tenure, flask)
    return flask
"""
FLASK = [sys.executable, "-m", "flask", "--app", "shop", "tenure"]


@pytest.fixture
def shop(tmp_path):
    """A project whose setting `TENURE` is given; returns the options of its processes."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}

    def made(**settings: object) -> dict[str, Any]:
        (tmp_path / "shop.py").write_text(SHOP.replace("SETTINGS", repr(settings)))
        return {"cwd": tmp_path, "env": env}

    return made


@contextmanager
def started(command: list[str], where: dict[str, Any]) -> Iterator[None]:
    process = subprocess.Popen(command, **where, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def test_commands_run_with_the_settings_of_the_application(dsn, shop):
    where = shop(dsn=as_url(dsn))
    done = run_process([*FLASK, "enqueue", "work", "--json"], **where, timeout=60)
    assert done.returncode == 0, done.stderr
    listed = run_process([*FLASK, "jobs", "list", "--kind", "work"], **where, timeout=60)
    assert "pending" in listed.stdout, listed.stderr


async def test_workers_have_all_settings_of_the_application(dsn, shop, sql):
    """Their supervisor does not load the application, and would serve the schema `tenure`."""
    routes = {"work": {"queue": "money", "priority": "high"}}
    where = shop(dsn=as_url(dsn), schema="jobs", workers_concurrency=7, retention_seconds=timedelta(days=1), routes=routes)
    assert run_process([*FLASK, "migrate"], **where, timeout=60).returncode == 0
    run_process(
        [sys.executable, "-c", "import shop; shop.create_app(); shop.work.enqueue_sync()"], **where, check=True, timeout=60
    )
    listed = json.loads(run_process([*FLASK, "config", "--json"], **where, timeout=60).stdout)["settings"]
    values = {setting["name"]: setting["value"] for setting in listed}
    assert (values["workers.concurrency"], values["retention_seconds"]) == (7, 86400)
    with started([*FLASK, "worker", "--processes", "1"], where):
        await until(lambda: sql("select state, queue from jobs.history"), is_=[("completed", "money")])
