"""On a terminal of 80 columns: real processes, a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from tenure.cli.output import ago
from tests.client.stock import lay_out
from tests.planted_secrets import assert_no_secret

PATIENCE = 60  # seconds
COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """A command that runs on a pseudo-terminal."""

    def __init__(self, *words: str, columns: int = 80, **env: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        foreign = ("TENURE_", "PG", "DATABASE_URL", "NO_COLOR", "COLUMNS")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "tenure", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**clean, "TERM": "xterm-256color", **env},
        )
        os.close(theirs)
        self.text = ""
        self._deadline = time.monotonic() + PATIENCE

    def read(self) -> bool:
        """Reads more output; False at the end. If the command hangs, it dumps its stack and the test fails."""
        ready, _, _ = select.select([self._ours], [], [], max(0.0, self._deadline - time.monotonic()))
        if not ready or time.monotonic() > self._deadline:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(PATIENCE)
            with suppress(OSError):
                self.text += os.read(self._ours, 65536).decode("utf-8", "replace")
            pytest.fail(f"it did not end within {PATIENCE} s: {self.text[-10_000:]}")
        try:
            some = os.read(self._ours, 65536)
        except OSError:  # closed by the other side
            return False
        self.text += some.decode("utf-8", "replace")
        return bool(some)

    def end(self) -> int:
        while self.read():
            pass
        os.close(self._ours)
        assert_no_secret(COLOURS.sub("", self.text))
        return self.process.wait(PATIENCE)


def on_terminal(*words: str, columns: int = 80, **env: str) -> tuple[list[str], str, int]:
    """The rows without colours, the raw output, and the exit code."""
    terminal = Terminal(*words, columns=columns, **env)
    code = terminal.end()
    return COLOURS.sub("", terminal.text).replace("\r", "").splitlines(), terminal.text, code


@pytest.fixture
def long_names(database):
    lay_out(database, 60)
    database.sql("update tenure.jobs set kind = repeat('kind_of_work_', 6), queue = repeat('long_', 12)")
    database.sql("update tenure.workers set host = repeat('host.', 10)")
    database.worker(queues=["a" * 40])
    database.term("stager")


@pytest.mark.parametrize("words", ["jobs list", "queues list", "workers", "leaders", "stats", "config"])
def test_tables_fit_into_80_columns_and_ids_stay_whole(dsn, long_names, words):
    rows, text, code = on_terminal(*words.split(), TENURE_DSN=dsn)
    assert code == 0, text
    assert all(len(row) <= 80 for row in rows), rows
    if words in ("jobs list", "workers", "leaders"):
        ids = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
        assert all(ids.search(row) for row in rows[1:] if row), rows
    if words == "jobs list":
        assert any("…" in row for row in rows)


def test_settings_show_their_values_on_a_narrow_terminal():
    rows, _, _ = on_terminal("config", TENURE_DSN=f"postgresql://someone@{'long.' * 20}example.org/database")
    shown = {name: values for name, *values in (row.split() for row in rows)}
    assert shown["SETTING"] == ["VALUE", "FROM"]
    assert shown["workers.concurrency"] == ["10", "default"]
    assert shown["dsn"][0].startswith("postgresql:")
    assert shown["dsn"][-1] == "TENURE_DSN"


def test_leaders_are_named_by_their_process_on_a_narrow_terminal(dsn, database):
    database.term("cron")
    database.sql("update tenure.leases set metadata = %s", '{"host": "web-1", "pid": 77}')
    rows, _, _ = on_terminal("leaders", TENURE_DSN=dsn)
    assert any(row.startswith("cron  web-1:77  holds") for row in rows), rows


def test_a_wide_terminal_shows_more(dsn, long_names):
    [head, *_], _, _ = on_terminal("jobs", "list", columns=160, TENURE_DSN=dsn)
    assert head.split() == ["ID", "STATE", "KIND", "QUEUE", "PRIORITY", "ATTEMPT", "WHEN"]


def test_a_pipe_gets_everything_whole_and_without_colours(line, long_names):
    shown = line("jobs", "list").stdout
    assert "kind_of_work_" * 6 in shown
    assert "\x1b" not in shown


def test_colours_are_for_terminals_and_may_be_refused(dsn, long_names):
    assert "\x1b[32m" in on_terminal("jobs", "list", TENURE_DSN=dsn)[1]
    assert "\x1b[32m" not in on_terminal("jobs", "list", TENURE_DSN=dsn, NO_COLOR="1")[1]


def test_watching_on_a_terminal_shows_a_bar_and_leaves_one_line(dsn, database):
    [job_id] = database.enqueue({})
    database.claim(database.worker())
    database.sql("insert into tenure.progress (job_id, fence, percent, message) values (%s, 1, 40, 'in the oven')", job_id)
    rows, text, code = on_terminal("watch", job_id, "--timeout", "300ms", TENURE_DSN=dsn)
    assert code == 6
    assert "running  attempt 1 of 3  40 %  in the oven" in " ".join(rows)
    assert "━" in text
    assert "is not done after 0.3 s" in rows[-1]


def test_ctrl_c_ends_a_watch_without_a_traceback(dsn, database):
    [job_id] = database.enqueue({})
    terminal = Terminal("watch", job_id, TENURE_DSN=dsn)
    while "pending" not in terminal.text:
        assert terminal.read()
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130, terminal.text
    assert "Traceback" not in terminal.text
    assert "tenure: stopped" in terminal.text


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.2, "now"),
        (-0.2, "now"),
        (12, "12 s ago"),
        (200, "3 m ago"),
        (7300, "2 h ago"),
        (47 * 3600, "47 h ago"),
        (2 * 86400 - 1, "2 d ago"),
        (3 * 86400, "3 d ago"),
        (-80, "in 1 m"),
        (-7200, "in 2 h"),
    ],
)
def test_times_are_shown_as_people_say_them(seconds, told):
    now = datetime.now(UTC)
    assert ago(now - timedelta(seconds=seconds), now) == told


def test_no_time_is_a_dash():
    assert ago(None) == "-"
