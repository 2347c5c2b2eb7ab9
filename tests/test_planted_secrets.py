"""The scan for secrets itself: a leak is found at every level and in what a process prints."""

from __future__ import annotations

import logging
import sys

import pytest

from tests.cli.started import started
from tests.planted_secrets import PASSWORD, PAYLOAD, planted_token, watching_logs
from tests.processes import run_process, worker_process

LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
LEAK = f"import sys; print({PASSWORD!r}, file=sys.stderr, flush=True)\n"


@pytest.fixture(autouse=True)
def no_secret_is_logged():
    """The scan of every other test is off: these tests leak on purpose."""


@pytest.mark.parametrize("name", ["tenure", "tenure.schedules"])
@pytest.mark.parametrize("level", LEVELS, ids=logging.getLevelName)
@pytest.mark.parametrize("secret", [PASSWORD, PAYLOAD, planted_token("planted-token-93be")])
def test_a_leak_is_found_at_every_level(name, level, secret):
    with watching_logs() as found:
        logging.getLogger(name).log(level, "connecting to %s", secret)
    assert [secret in text for text in found] == [True]


@pytest.mark.parametrize("level", LEVELS, ids=logging.getLevelName)
def test_a_leak_is_found_in_fields_and_tracebacks(level):
    logger = logging.getLogger("tenure")
    with watching_logs() as found:
        logger.log(level, "connecting", extra={"dsn": PASSWORD})
        try:
            raise ValueError(PAYLOAD)
        except ValueError:
            logger.log(level, "failed", exc_info=True)
    assert len(found) == 2


def test_handlers_receive_what_they_receive_without_the_scan(caplog):
    def logged():
        caplog.clear()
        for name in ("tenure", "tenure.schedules", "shop"):
            for level in LEVELS:
                logging.getLogger(name).log(level, "%s", name)
        return caplog.record_tuples

    def at_each_level():
        seen = [logged()]
        for level in LEVELS:
            with caplog.at_level(level, "tenure"):
                seen.append(logged())
        return seen

    without = at_each_level()
    with watching_logs():
        assert at_each_level() == without
    assert at_each_level() == without


def test_a_logger_of_another_library_is_left_alone():
    with watching_logs() as found:
        assert not logging.getLogger("shop").isEnabledFor(logging.DEBUG)
        logging.getLogger("shop").error(PASSWORD)
    assert found == []


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_leak_is_found_in_what_a_program_prints(stream):
    with pytest.raises(AssertionError, match="a secret was printed"):
        run_process([sys.executable, "-c", f"import sys; sys.{stream}.write({PAYLOAD!r})"])


def test_a_leak_is_found_in_the_log_of_a_worker(project, dsn):
    (project / "jobs.py").write_text(LEAK)
    with pytest.raises(AssertionError, match="a secret was printed"), worker_process(project, dsn) as worker:
        worker.wait(60)


@pytest.mark.parametrize("columns", [None, 80], ids=["pipe", "terminal"])
def test_a_leak_is_found_in_what_a_command_prints(project, columns):
    (project / "jobs.py").write_text(LEAK + "raise SystemExit(1)\n")
    with pytest.raises(AssertionError, match="a secret was printed"):  # noqa: SIM117 - the scan is at the end of the inner one
        with started(project, "worker", "--app", "jobs:app", "--dsn", "postgresql://nowhere/", columns=columns) as command:
            command.says("planted")
