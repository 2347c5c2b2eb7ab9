"""A worker that stays for all examples of a test."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from tenure import Tenure
from tenure.logs import JsonLines, Lines
from tests.worker.serving import serving


class FuzzWorker:
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


class Logged(logging.Filter):
    """Formats every record as our processes do, and lets none through: test reports cannot carry lone surrogates."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0
        self.faults: list[BaseException] = []

    def filter(self, record: logging.LogRecord) -> bool:
        self.failures += " failed in attempt " in record.getMessage()
        try:
            Lines().format(record)
            JsonLines().format(record).encode()
        except BaseException as fault:
            self.faults.append(fault)
        return False


@pytest.fixture
def logged() -> Iterator[Logged]:
    logger, logged = logging.getLogger("tenure"), Logged()
    logger.addFilter(logged)
    yield logged
    logger.removeFilter(logged)


@pytest.fixture
def fuzz_worker(dsn) -> Iterator[FuzzWorker]:
    fuzz_worker = FuzzWorker(Tenure(dsn))
    yield fuzz_worker
    fuzz_worker.close()
