"""Runs Django's own tests of `django.tasks` on Tenure's backend: `python -m tests.integrations.django.conformance FOLDER`.

The folder contains the package `tasks` of Django's tests, from its source distribution. They are written for the two backends
that Django has: one that only records, and one that runs a task at once. In their place stand Tenure's backend without a worker,
and with one, where enqueue waits for the job.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import unittest
from contextlib import suppress
from typing import Any

import django
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict

WITHIN = "20s"


def configure(dsn: str, name: str) -> None:
    given = conninfo_to_dict(dsn)
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": given.pop("dbname"), "OPTIONS": given, "TEST": {"NAME": name}}
    settings.configure(
        DATABASES={"default": database},
        INSTALLED_APPS=["tenure.integrations.django"],
        TASKS={"default": {"BACKEND": "tenure.integrations.django.task_backend.TenureBackend", "QUEUES": []}},
        # A test looks at the result inside of the transaction that enqueued.
        TENURE={"ENQUEUE_IN_TRANSACTION": False},
        USE_TZ=True,
        LOGGING_CONFIG=None,
    )
    django.setup()


def replace_backends() -> None:
    from django.tasks.backends import dummy, immediate

    from tenure import JobUnfinished
    from tenure.integrations.django import app
    from tenure.integrations.django.task_backend import TenureBackend

    class Recorded(TenureBackend):
        """Nothing runs its jobs."""

        def __init__(self, alias: str, params: dict[str, Any]) -> None:
            super().__init__(alias, params)
            self.results: list[Any] = []

        def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
            result = super().enqueue(task, args, kwargs)
            self.results.append(result)
            return result

        def clear(self) -> None:
            for result in self.results:
                app.client().delete_sync(result.id)
            self.results.clear()

    class Worked(TenureBackend):
        """A worker runs its jobs before enqueue returns."""

        def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
            result = super().enqueue(task, args, kwargs)
            with Working(app), suppress(JobUnfinished):
                app.client().wait_sync(result.id, timeout=WITHIN)
            return self.get_result(result.id)

    dummy.DummyBackend = Recorded
    immediate.ImmediateBackend = Worked


class Working:
    """A worker in a thread, for as long as the block lasts."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._work()))

    async def _work(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self._app.running(concurrency=2):
            self._ready.set()
            await self._stop.wait()

    def __enter__(self) -> None:
        self._thread.start()
        assert self._ready.wait(20)

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)


class Outcomes(unittest.TextTestResult):
    """Keeps the names of the tests by what became of them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.by_name: dict[str, str] = {}

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        name = ".".join(test.id().split(".")[-2:])
        failed = any(str(test.id()) in str(one.id()) for one, _ in [*self.failures, *self.errors])
        self.by_name[name] = "failed" if failed else "passed"


def main() -> None:
    folder = sys.argv[1]
    configure(os.environ["SHOP_DSN"], os.environ["SHOP_TEST_NAME"])
    replace_backends()
    sys.path.insert(0, folder)
    from django.test import SimpleTestCase
    from django.test.runner import DiscoverRunner

    SimpleTestCase.databases = {"default"}  # these tests are written for backends without a database

    class Runner(DiscoverRunner):
        def get_resultclass(self) -> type[Outcomes]:
            return Outcomes

        def suite_result(self, suite: Any, result: Outcomes, **kwargs: Any) -> int:
            sys.stdout.write(json.dumps(result.by_name) + "\n")
            return super().suite_result(suite, result, **kwargs)

    Runner(verbosity=0, interactive=False).run_tests(["tasks"])


if __name__ == "__main__":
    main()
