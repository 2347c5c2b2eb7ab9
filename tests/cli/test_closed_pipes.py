"""Commands whose output is closed by its reader, as in `tenure ... | head -1`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tenure.cli import exit_codes
from tenure.store.migrator import newest_version
from tests.cli.started import FOREIGN

pytestmark = pytest.mark.slow

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}


def unread(*words: str, stream: str = "stdout", **env: str) -> tuple[int, str]:
    """The exit code and the output of the other stream, while this one is closed."""
    ours, theirs = os.pipe()
    os.close(ours)
    other = "stderr" if stream == "stdout" else "stdout"
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "tenure", *words],
            env={**CLEAN, **env},
            stdin=subprocess.DEVNULL,
            **{stream: theirs, other: subprocess.PIPE},
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(theirs)
    return ended.returncode, getattr(ended, other)


def test_migrate_runs_everything_without_a_reader_of_what_it_prints(line, bare_dsn):
    assert unread("migrate", "--dry-run", TENURE_DSN=bare_dsn) == (exit_codes.SUCCESS, "")
    assert unread("migrate", TENURE_DSN=bare_dsn) == (exit_codes.SUCCESS, "")
    found = line.json("migrate", "--status", "--dsn", bare_dsn)
    assert (found["version"], found["pending"]) == (newest_version(), {"pre": [], "post": []})
    assert unread("migrate", TENURE_DSN=bare_dsn) == (exit_codes.SUCCESS, "")


@pytest.mark.parametrize(
    "words",
    [
        "jobs list",
        "jobs list --json",
        "queues list",
        "top --json",
        "top --once",
        "config",
        "sql",
        "migrate --status",
        "--help",
    ],
)
def test_an_answer_without_a_reader_ends_the_command_quietly(words, dsn, enqueue_job):
    enqueue_job()
    assert unread(*words.split(), TENURE_DSN=dsn) == (exit_codes.CLOSED_PIPE, "")


def test_an_error_without_a_reader_keeps_its_exit_code(dsn):
    assert unread("jobs", "show", "0" * 32, stream="stderr", TENURE_DSN=dsn) == (exit_codes.NOT_FOUND, "")
    assert unread("jobs", "list", "--nonsense", "--json", stream="stderr", TENURE_DSN=dsn) == (exit_codes.USAGE, "")
