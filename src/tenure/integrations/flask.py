"""Flask: settings from the app's config, the app context around handlers, `flask tenure ...`, errors as responses."""

from __future__ import annotations

import importlib
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import click
from flask import Flask, jsonify

from tenure.app import Tenure
from tenure.client.locating import import_path
from tenure.integrations.exported_settings import exported
from tenure.integrations.http_errors import STATUS, detail_of, headers_of, status_of
from tenure.model.errors import ConfigError, TenureError
from tenure.setting_sources import PREFIX


class FlaskTenure:
    """The extension: `FlaskTenure(app, flask_app)`, or `init_app(flask_app)` in an application factory.

    Settings come from `TENURE` in Flask's config, a mapping; the DSN also from `SQLALCHEMY_DATABASE_URI`. In every handler
    `flask.current_app` works, and what Flask-SQLAlchemy opens is closed after the run.
    """

    def __init__(self, app: Tenure, flask: Flask | None = None, *, create: str | None = None) -> None:
        """`create`: your application factory as `module:function`. A worker, which serves no requests, calls it."""
        self.app = app
        self._flask: Flask | None = None
        self._create = create
        self._lock = threading.Lock()
        app.around_thread(self._around_thread)
        app.around_coroutine(self._around_coroutine)
        if flask is not None:
            self.init_app(flask)

    def init_app(self, flask: Flask) -> None:
        """The last application that was initialized is the one whose context handlers have."""
        self._flask = flask
        self.app.configure(**_settings(flask.config))
        flask.extensions["tenure"] = self
        flask.cli.add_command(_command(self.app))
        for error in STATUS:
            flask.register_error_handler(error, _respond)

    def _around_thread(self, _: Any) -> Iterator[None]:
        with self._context():
            yield

    async def _around_coroutine(self, _: Any) -> AsyncIterator[None]:
        with self._context():
            yield

    def _context(self) -> Any:
        with self._lock:
            if self._flask is None and self._create is not None:
                module, _, function = self._create.partition(":")
                self._flask = getattr(importlib.import_module(module), function)()
        if self._flask is None:
            raise ConfigError(
                "this worker has no Flask application: name your factory, FlaskTenure(app, create='shop:create_app'), or call "
                "init_app() in a module that workers import"
            )
        return self._flask.app_context()


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(config.get("TENURE") or {})
    if "dsn" not in given and (uri := config.get("SQLALCHEMY_DATABASE_URI")):
        given["dsn"] = str(uri)
    return given


def _respond(error: TenureError) -> Any:
    response = jsonify(detail=detail_of(error))
    response.status_code = status_of(error)
    response.headers.update(headers_of(error))
    return response


def _command(app: Tenure) -> click.Command:
    @click.command("tenure", context_settings={"ignore_unknown_options": True, "help_option_names": []})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def tenure(arguments: tuple[str, ...]) -> None:
        """Runs a command of Tenure with the settings of this application: `flask tenure worker`."""
        import os  # noqa: PLC0415
        import sys  # noqa: PLC0415

        os.environ.update({**exported(app.given), f"{PREFIX}APP": import_path(app)})
        os.execv(sys.executable, [sys.executable, "-m", "tenure", *arguments])  # noqa: S606 - our own program

    return tenure
