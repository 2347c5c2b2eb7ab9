"""The web server beside the workers of `tenure up`, `tenure dev` and `tenure demo`: `tenure web` in a process of its own.

The socket belongs to the process that starts it, so a port that is taken is known at once, and no connection is refused while the
server is replaced. The server must not run in a supervisor: it imports the app.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import click

from tenure.cli.options import Command
from tenure.settings import Settings

log = logging.getLogger("tenure")

HOST = "127.0.0.1"
NEEDED = ("starlette", "uvicorn", "websockets", "jsonschema")
CHECK_EVERY = 0.5  # seconds
STABLE_AFTER = 10.0
"""Seconds. A server that ends sooner after its start is started again after a growing pause."""
LONGEST_PAUSE = 30.0  # seconds
STOP_TIMEOUT = 8.0  # seconds; the server gives requests five


def web_options(command: Command) -> Command:
    """The options of commands that also start a web server."""
    command = click.option("--no-web", is_flag=True, help="Start no web server.")(command)
    help_ = f"Port of the web server on {HOST} (8080); 0: none."
    return click.option("--web-port", type=click.IntRange(0, 65535), help=help_)(command)


class WebProcess:
    def __init__(self, listening: socket.socket, settings: Settings, app: str, folder: str, output: Path | None) -> None:
        """`output`: the file for what it logs, if that is not for our own log."""
        self._listening = listening
        self._settings = settings
        self._app = app
        self._folder = folder
        self._output = output
        self._asked_to_restart = asyncio.Event()
        self._start()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._listening.getsockname()[1]}"

    def _start(self) -> None:
        number = self._listening.fileno()
        command = [sys.executable, "-m", "tenure.cli.run_with_parent", str(os.getpid()), "web", "--app", self._app]
        log_file = None if self._output is None else self._output.open("ab")
        try:
            self._process = subprocess.Popen(
                [*command, "--fd", str(number)],
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                cwd=self._folder,
                # Not as arguments, which every user of this machine can read.
                env={**os.environ, "TENURE_DSN": self._settings.dsn or "", "TENURE_SCHEMA": self._settings.schema},
                pass_fds=[number],
                # Ctrl-C must reach only this process, which then stops the server.
                process_group=0,
            )
        finally:
            if log_file is not None:
                log_file.close()
        self._started = time.monotonic()

    def restart(self) -> None:
        """With the current code. Done by `keep()`."""
        self._asked_to_restart.set()
        self._process.terminate()

    async def keep(self) -> None:
        """Starts it again when it has ended. Runs until it is cancelled."""
        deaths = 0
        while True:
            await asyncio.sleep(CHECK_EVERY)
            code = self._process.poll()
            if code is None:
                continue
            if not self._asked_to_restart.is_set():
                deaths = 1 if time.monotonic() - self._started > STABLE_AFTER else deaths + 1
                log.error("web server died; starting another", extra={"child_pid": self._process.pid, "exit_code": code})
                with suppress(TimeoutError):  # new code need not wait: it may repair what was wrong
                    async with asyncio.timeout(min(LONGEST_PAUSE, 0.5 * 2.0**deaths)):
                        await self._asked_to_restart.wait()
            self._asked_to_restart.clear()
            self._start()

    def stop(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                self._process.send_signal(number)
                try:
                    self._process.wait(STOP_TIMEOUT)
                except subprocess.TimeoutExpired:
                    continue
        self._listening.close()


def start_web(settings: Settings, app: str, folder: str, port: int, output: Path | None = None) -> WebProcess | str:
    """Or why there is none: the workers do not need it."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        return f"{missing[0]} is not installed; for the dashboard and the API, run `pip install 'tenure[web]'`"
    try:
        listening = socket.create_server((HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        return f"cannot listen on {HOST}:{port} ({reason}): choose another --web-port, or --no-web"
    return WebProcess(listening, settings, app, folder, output)
