"""Log lines for people and for programs, with the job they belong to."""

from __future__ import annotations

import io
import json
import logging
import sys

import pytest

from tenure import Context, logs
from tenure.logs import JsonLines, Lines
from tests.processes import run_process


@pytest.fixture(params=[JsonLines, Lines])
def lines(request):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(request.param())
    loggers = [logging.getLogger(name) for name in ("tenure.job", "shop")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel("INFO")
    yield request.param, stream
    for logger in loggers:
        logger.removeHandler(handler)


async def test_every_line_of_a_handler_names_its_job_in_the_loop_and_in_a_thread(app, lines):
    form, stream = lines

    @app.job
    async def on_the_loop(ctx: Context) -> None:
        logging.getLogger("shop").info("plain logging")
        ctx.log.info("sent", to="ada")

    @app.job
    def in_a_thread(ctx: Context) -> None:
        logging.getLogger("shop").info("plain logging")
        ctx.log.info("sent", to="ada")

    async with app.running():
        for job in (on_the_loop, in_a_thread):
            handle = await job.enqueue()
            await handle.result(10)
            said = stream.getvalue().splitlines()[-2:]
            assert all(str(handle.id) in line and job.name in line for line in said)
            if form is JsonLines:
                plain, own = map(json.loads, said)
                assert (plain["message"], plain["level"], plain["attempt"]) == ("plain logging", "info", 1)
                assert (own["message"], own["fields"]) == ("sent", {"to": "ada"})
            else:
                assert said[1].endswith(f"sent  to=ada  job={job.name} {handle.id}")


def test_outside_of_a_job_a_line_names_none_and_a_traceback_is_kept():
    try:
        raise ValueError("no")
    except ValueError:
        record = logging.LogRecord("shop", logging.ERROR, __file__, 1, "it %s", ("failed",), sys.exc_info())
    told = json.loads(JsonLines().format(record))
    assert told["message"] == "it failed"
    assert "ValueError: no" in told["traceback"]
    assert "job_id" not in told


@pytest.mark.parametrize(("variable", "value"), [("TENURE_LOG_FORMAT", "xml"), ("TENURE_LOG", "LOUD")])
def test_a_wrong_setting_is_reported_with_the_right_ones(variable, value, monkeypatch):
    code = "from tenure.logs import set_up_logging; set_up_logging()"
    ended = run_process([sys.executable, "-c", code], env={variable: value})
    assert f"{variable} is {value!r}: use" in ended.stderr


def record_of(logger: str, **extra: object) -> logging.LogRecord:
    return logging.getLogger(logger).makeRecord(logger, logging.INFO, __file__, 1, "worker process died", (), None, extra=extra)


def test_the_fields_of_our_own_records_follow_the_message():
    record = record_of("tenure", child_pid=7, cause="signal SIGKILL", queues=["a", "b"], error='say "no"', empty="")
    assert (
        Lines()
        .format(record)
        .endswith('worker process died  child_pid=7  cause="signal SIGKILL"  queues=a,b  error="say \\"no\\""  empty=""')
    )
    told = json.loads(JsonLines().format(record))
    assert (told["message"], told["child_pid"], told["cause"]) == ("worker process died", 7, "signal SIGKILL")
    assert told["queues"] == ["a", "b"]


def test_a_field_of_many_lines_follows_as_a_block_that_cannot_pass_for_a_record():
    record = record_of("tenure", child_pid=7, reason="Traceback:\n  File x\nValueError: no\n")
    block = "\n    reason:\n        Traceback:\n          File x\n        ValueError: no"
    assert Lines().format(record).endswith(f"worker process died  child_pid=7{block}")


def test_a_field_does_not_replace_what_every_line_has():
    told = json.loads(JsonLines().format(record_of("tenure.manager", pid=7, level="low")))
    assert (told["pid_"], told["level"], told["level_"]) == (7, "info", "low")
    assert told["pid"] != 7


def test_fields_of_other_libraries_are_left_out():
    record = record_of("shop", connection=object())
    assert Lines().format(record).endswith("worker process died")
    assert "connection" not in json.loads(JsonLines().format(record))


def test_a_worker_that_was_given_a_name_carries_it_in_every_line(monkeypatch):
    monkeypatch.setattr(logs._Worker, "name", None)
    monkeypatch.setattr(logs._Worker, "given", False)
    logs.name_worker("box:7", given=False)
    assert json.loads(JsonLines().format(record_of("shop")))["worker"] == "box:7"
    assert Lines().format(record_of("shop")).endswith("worker process died")
    logs.name_worker("mail-1", given=True)
    assert Lines().format(record_of("shop")).endswith("worker process died  worker=mail-1")
    in_words = record_of("tenure", job_id="7", worker="mail-1", **{logs.SPELLED_OUT: True})
    assert Lines().format(in_words).endswith("worker process died  worker=mail-1")
    logs.name_worker("box:7", given=False)
    assert Lines().format(in_words).endswith("worker process died")
