"""Tracebacks begin where the user's code does."""

from __future__ import annotations

import concurrent.futures
import subprocess
import traceback

import pytest

from tenure.model.durations import to_timedelta
from tenure.model.tracebacks import cut_to_user_code


def functions(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def caught(call) -> BaseException:
    with pytest.raises(BaseException) as found:
        call()
    return found.value


def called_by_the_library() -> None:
    subprocess.run(["true"], timeout="soon", check=True)  # a frame of the standard library at the end


def test_what_the_handler_called_is_kept():
    error = caught(lambda: to_timedelta("5x"))
    before = functions(error)
    cut_to_user_code(error)
    assert functions(error) == before
    assert before[-1] != "<lambda>"


def test_frames_in_front_of_it_are_removed():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        error = pool.submit(called_by_the_library).exception()
    assert error is not None
    assert functions(error)[0] == "run"
    cut_to_user_code(error)
    assert functions(error)[0] == "called_by_the_library"
    assert len(functions(error)) > 1


def test_without_a_frame_of_the_user_all_are_kept():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        error = pool.submit(to_timedelta, "5x").exception()
    assert error is not None
    before = functions(error)
    cut_to_user_code(error)
    assert functions(error) == before


def test_a_syntax_error_of_a_module_names_its_file_only(tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("def broken(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        error = pool.submit(__import__, "broken_module").exception()
    assert error is not None
    cut_to_user_code(error)
    text = "".join(traceback.format_exception(error))
    assert "broken_module.py" in text
    assert "importlib" not in text


def test_an_error_that_was_never_raised_is_left_alone():
    error = ValueError("x")
    cut_to_user_code(error)
    assert error.__traceback__ is None
