"""Handles go to other processes and work there, through the same app."""

from __future__ import annotations

import pickle
import sys
import textwrap

import pytest

from tenure import ConfigError, Tenure
from tenure.model.ids import uuid7_time
from tests.processes import run_process


def run(code: str, project, *args: str) -> str:
    done = run_process([sys.executable, "-c", textwrap.dedent(code), *args], cwd=project)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def module(project, dsn):
    (project / "shop.py").write_text(
        textwrap.dedent(f"""
        from tenure import Tenure
        app = Tenure({dsn!r})

        @app.job
        def add(a: int, b: int) -> int:
            return a + b
        """)
    )
    return project


def test_a_handle_works_in_another_process(module):
    pickled = run(
        """
        import pickle, sys
        from shop import app, add
        sys.stdout.write(pickle.dumps(add.using(key="k").enqueue_sync(1, 2)).hex())
        """,
        module,
    )
    told = run(
        """
        import pickle, sys
        handle = pickle.loads(bytes.fromhex(sys.argv[1]))
        print(handle.kind, handle.existed, handle.status_sync().state, handle.cancel_sync(), handle.status_sync().state)
        again = pickle.loads(pickle.dumps(handle))
        print(again.id == handle.id, again.cancel_sync())
        """,
        module,
        pickled,
    )
    assert told.split() == ["add", "False", "pending", "True", "canceled", "True", "False"]


@pytest.mark.slow
def test_a_handle_works_in_a_process_that_multiprocessing_starts(module):
    (module / "main.py").write_text(
        textwrap.dedent("""
        import multiprocessing
        from shop import app as other
        from tenure import Tenure
        app = Tenure(other.given["dsn"])

        @app.job
        def work() -> None: ...

        def look(handle):
            return str(handle.status_sync().state)

        if __name__ == "__main__":
            for method in ("spawn", "fork"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(pool.apply(look, [work.enqueue_sync()]))
        """)
    )
    done = run_process([sys.executable, "-W", "ignore", "main.py"], cwd=module)
    assert (done.returncode, done.stdout.split()) == (0, ["pending", "pending"]), done.stderr


def test_a_handle_whose_app_cannot_be_found_says_so_when_it_is_used(dsn):
    app = Tenure(dsn)  # in no module

    @app.job
    def work() -> None: ...

    handle = work.enqueue_sync()
    app.close_sync()
    found = pickle.loads(pickle.dumps(handle))
    assert (found.id, found.kind) == (handle.id, "work")
    with pytest.raises(ConfigError, match="cannot be found here"):
        found.status_sync()


def test_a_handle_knows_when_it_was_made(dsn):
    app = Tenure(dsn)

    @app.job
    def work() -> None: ...

    handle = work.enqueue_sync()
    assert handle.enqueued_at == uuid7_time(handle.id)
    assert abs(handle.enqueued_at - handle.status_sync().enqueued_at).total_seconds() < 60
    app.close_sync()
