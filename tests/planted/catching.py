"""Runs tests on a copy of the source, and reports their results."""

from __future__ import annotations

import compileall
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from tenure.embedded import EmbeddedServer
from tests.planted.bug import Bug
from tests.planted.planting import ROOT, SOURCE, NotPlantable, copy_source, plant

LIMIT = 60.0
"""Seconds in which a bug must be caught. A test that takes longer may hang because of it, or be slow: that does not count."""

PATIENCE = "20"
"""Seconds for which its tests wait for a fact. A planted bug often shows as a fact that never becomes true."""

SIMPLEST = "tests/test_smoke.py"
BASELINE_LIMIT = 1200.0
MARK = "TENURE_PLANTED"
FAILED = 1  # pytest's exit code: all tests were found, and some failed

_PYTEST = (
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "--no-header",
    "--tb=short",
    "--show-capture=no",
    "-rfE",
    "-o",
    "addopts=",
)
_VERDICT = re.compile(r"^(FAILED|ERROR) (.+?)(?: - (.*))?$", re.MULTILINE)
_CRUDE = re.compile(r"\b(SyntaxError|Undefined\w+|Ambiguous\w+|DatatypeMismatch|ImportError|NameError)\b")
"""Code that does not run at all is not a bug that a developer would commit."""


@dataclass(frozen=True)
class Catch:
    name: str
    caught: bool
    by: str
    """The test that failed; otherwise why the bug does not count as caught."""
    why: str
    """The first words of the failure."""
    seconds: float

    def __str__(self) -> str:
        return f"{'caught  ' if self.caught else 'SURVIVED'} {self.seconds:5.1f} s  {self.name}: {self.by}"

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Ground:
    """What all runs share. Each test has a database of its own."""

    source: Path
    """As it was when the hunt began."""
    home: Path
    """Of the server."""


@contextmanager
def ground() -> Iterator[Ground]:
    with folder("tenure-planted-") as source, folder("tenure-tests-") as home, EmbeddedServer(home / "server", durable=False):
        copy_source(SOURCE, source / "src")
        compileall.compile_dir(source / "src", quiet=2)  # once, and not again in each process of each run
        yield Ground(source / "src", home)


def hunt(bug: Bug, on: Ground) -> Catch:
    """Plants the bug and runs the tests that should catch it."""
    began = time.monotonic()
    tests = bug.caught_by if bug.shows_at_once else (SIMPLEST, *bug.caught_by)
    with folder("tenure-planted-") as copy:
        try:
            plant(bug, on.source, copy / "src")
        except NotPlantable as error:
            return Catch(bug.name, caught=False, by="it cannot be planted", why=str(error), seconds=0.0)
        code, output = run_tests(copy / "src", tests, "-x", home=on.home, limit=LIMIT)
    return Catch(bug.name, *_judged(bug, code, output), seconds=round(time.monotonic() - began, 1))


def baseline(tests: Iterable[str], on: Ground, jobs: int) -> str:
    """Empty if all these tests pass on the source as it is; otherwise their output."""
    options = ("-n", str(jobs)) if jobs > 1 else ()
    code, output = run_tests(on.source, tests, *options, home=on.home, limit=BASELINE_LIMIT)
    return "" if code == 0 else output


def _judged(bug: Bug, code: int | None, output: str) -> tuple[bool, str, str]:
    verdict = _VERDICT.search(output.rpartition("short test summary info")[2])
    if code is None:
        return False, f"no answer within {LIMIT:.0f} s", ""
    if code == 0:
        return False, "all its tests passed", ""
    if code != FAILED or verdict is None:
        return False, f"the tests could not be run (exit code {code})", output.strip()[-500:]
    how, test, why = verdict.group(1, 2, 3)
    if how == "ERROR" and not bug.by_error:
        return False, f"{test} could not be set up", why
    if test.startswith(SIMPLEST) or (_CRUDE.search(why or "") and not bug.by_error):
        return False, f"too crude, seen by {test}", why
    return True, test, why or ""


@contextmanager
def folder(prefix: str) -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix=prefix))
    made.chmod(0o755)  # as root the server runs under another account, which must be able to pass
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def run_tests(copy: Path, tests: Iterable[str], *options: str, home: Path, limit: float) -> tuple[int | None, str]:
    """The exit code, or None after the time limit, and the whole output."""
    mark = uuid4().hex
    env = {
        **os.environ,
        "PYTHONPATH": str(copy),
        "TENURE_TEST_HOME": str(home),
        "TENURE_INTERLEAVINGS": "chosen",
        "TENURE_TEST_PATIENCE": PATIENCE,
        MARK: mark,
        "COLUMNS": "500",
    }
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, *_PYTEST, *options, *tests],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process, mark)
        output.seek(0)
        return code, output.read().decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """The whole group, and the workers that tests put in groups of their own: they carry the mark."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    sign = f"{MARK}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if sign in entry.read_bytes().split(b"\0"):
                os.kill(int(entry.parent.name), signal.SIGKILL)
