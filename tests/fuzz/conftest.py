"""A worker that stays for all examples of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tenure import Tenure
from tests.worker.serving import serving


class Bench:
    """Runs a step of a test on the loop on which the worker lives."""

    def __init__(self, app: Tenure) -> None:
        self.app = app
        self._runner = asyncio.Runner()
        self._worker = serving(app, concurrency=50)

    def run(self, step):
        return self._runner.run(step)

    def open(self) -> None:
        self.run(self._worker.__aenter__())

    def close(self) -> None:
        self.run(self._worker.__aexit__(None, None, None))
        self.run(self.app.close())
        self._runner.close()


@pytest.fixture
def bench(dsn) -> Iterator[Bench]:
    bench = Bench(Tenure(dsn))
    yield bench
    bench.close()
