"""Secrets planted in every test: the password of each DSN, and a word for payloads. None of them may be logged or printed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from tenure.logs import extra_fields

PASSWORD = "planted-password-8f2c"
"""Of every DSN that tests use. The embedded server trusts its users, so that it does not matter to PostgreSQL."""

PAYLOAD = "planted-payload-41d7"
"""For inputs, outputs, keys and auth."""


def assert_no_secret(text: str) -> None:
    for secret in (PASSWORD, PAYLOAD):
        assert secret not in text, f"a secret was printed: ...{text[max(0, text.index(secret) - 300) : text.index(secret) + 60]}"


@contextmanager
def watching_logs() -> Iterator[list[str]]:
    """Gives the records of ours that contain a secret."""
    handler = _Scan()
    logger = logging.getLogger("tenure")
    logger.addHandler(handler)
    try:
        yield handler.found
    finally:
        logger.removeHandler(handler)


class _Scan(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._formatter = logging.Formatter("%(message)s")

    def emit(self, record: logging.LogRecord) -> None:
        text = self._formatter.format(record) + repr(extra_fields(record))
        if PASSWORD in text or PAYLOAD in text:
            self.found.append(text)
