"""Folders that the server's account can reach, and real processes that hold a server."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import tenure
from tenure.embedded import EmbeddedServer
from tests.planted_secrets import assert_no_secret

SOURCE = Path(tenure.__file__).parent.parent
SEARCH_PATH = os.pathsep.join(filter(None, sys.path))
HOLD = """
import sys
from pathlib import Path
from tenure.embedded import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]), durable=False).start()
print(server.dsn, flush=True)
sys.stdin.read()
"""


def until(fact, within=30.0):
    """Waits for a fact and returns it."""
    deadline = time.monotonic() + within
    while not (found := fact()):
        assert time.monotonic() < deadline, f"not within {within} s: {fact}"
        time.sleep(0.05)
    return found


def processes_naming(*words):
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    rows = (line.split(None, 1) for line in listed.splitlines())
    return [int(pid) for pid, command in rows if all(str(word) in command for word in words)]


def guardians_of(home):
    return processes_naming("run_guardian.py", home)


def status(home):
    return EmbeddedServer(home).status()


class HolderProcess:
    """A process that holds the server of a home until it is asked to end, or killed."""

    def __init__(self, home, python=sys.executable, **options):
        environment = {**os.environ, "PYTHONPATH": SEARCH_PATH, **options.pop("env", {})}
        self.process = subprocess.Popen(
            [python, "-W", "error", "-c", HOLD, str(home)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    @property
    def pid(self):
        return self.process.pid

    def ready(self):
        self.dsn = self.process.stdout.readline().strip()
        assert self.dsn, self.process.stderr.read()
        return self

    def leave(self):
        _, said = self.process.communicate(timeout=20)
        assert (self.process.returncode, said) == (0, "")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        assert_no_secret("".join(self.process.communicate()))


@contextmanager
def reachable_folder():
    """Not pytest's own folder: as root only root can reach that, and its path is long."""
    folder = Path(tempfile.mkdtemp(prefix="embedded-"))
    folder.chmod(0o711)
    try:
        yield folder
        until(lambda: not processes_naming(folder))
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def reachable():
    with reachable_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def finished_home():
    with reachable_folder() as folder:
        with EmbeddedServer(folder / "home", durable=False):
            pass
        yield folder / "home"


@pytest.fixture
def home(finished_home):
    """A home with data and without a server. Tests share it, because initdb is slow, and leave it as they found it."""
    yield finished_home
    until(lambda: not processes_naming(finished_home))
    assert (finished_home / "pg" / "PG_VERSION").is_file()


@pytest.fixture
def hold():
    """Starts holder processes; those still there at the end are killed."""
    with ExitStack() as stack:

        def start(home, **options):
            holder = HolderProcess(home, **options)
            stack.callback(lambda: holder.process.poll() is None and holder.kill())
            return holder

        yield start
