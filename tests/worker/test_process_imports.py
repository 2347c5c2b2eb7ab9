"""What a process for a job imports, and in which order."""

from __future__ import annotations

import os
import sys
from textwrap import dedent

import pytest

from tests.processes import run_process

FILES = {
    "service.py": """
        import builtins

        from tenure import Tenure

        builtins.set_up_by_the_service = True
        app = Tenure()
        """,
    "jobs.py": """
        import builtins

        assert builtins.set_up_by_the_service
        import service

        @service.app.job(run_in="process", max_attempts=1)
        def work() -> str:
            return "worked"
        """,
    "script.py": """
        import asyncio

        from service import app
        from jobs import work

        async def main():
            async with app.running():
                print(await (await work.enqueue()).result(timeout="30s"))
            await app.close()

        if __name__ == "__main__":
            asyncio.run(main())
        """,
    "program.py": """
        import asyncio

        from tenure import Context, Tenure

        app = Tenure()
        print("begun")

        @app.job(run_in="process", max_attempts=1)
        def work(ctx: Context, n: int) -> int:
            return n

        async def main():
            async with app.running(concurrency=1):
                print([await (await work.enqueue(n)).result(timeout="30s") for n in range(3)])
            await app.close()

        if __name__ == "__main__":
            asyncio.run(main())
        """,
    "unguarded.py": """
        import asyncio

        from tenure import JobFailed, Tenure

        app = Tenure()
        print("begun")

        @app.job(run_in="process", max_attempts=1)
        def work() -> int:
            return 1

        async def main():
            async with app.running(concurrency=1):
                try:
                    await (await work.enqueue()).result(timeout="30s")
                except JobFailed as failed:
                    print(failed)
            await app.close()

        asyncio.run(main())
        """,
}


@pytest.fixture
def ran(project, dsn):
    for name, text in FILES.items():
        (project / name).write_text(dedent(text))

    def run(script):
        env = {**os.environ, "TENURE_DSN": dsn, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, script]
        ended = run_process(command, cwd=project, env=env, timeout=60)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run


def test_the_module_that_makes_the_app_comes_before_that_of_the_job(ran):
    assert ran("script.py") == "worked\n"


@pytest.mark.slow
def test_a_program_that_holds_its_jobs_itself_is_run_once_in_a_process_and_not_for_each_job(ran):
    assert ran("program.py") == "begun\nbegun\n[0, 1, 2]\n"


@pytest.mark.slow
def test_a_script_without_a_guard_is_not_started_again_in_its_processes(ran, sql):
    begun, again, failure = ran("unguarded.py").splitlines()
    assert (begun, again) == ("begun", "begun")
    assert "unguarded.py starts a worker" in failure
    assert 'if __name__ == "__main__":' in failure
    assert sql("select count(*) from tenure.all_jobs") == [(1,)]
