"""Secrets planted in every test: the password of each DSN, a word for payloads, and the tokens that tests of the web server make.
None of them may be logged or printed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tenure.logs import extra_fields

PASSWORD = "planted-password-8f2c"
"""Of every DSN that tests use. The embedded server trusts its users, so that it does not matter to PostgreSQL."""

PAYLOAD = "planted-payload-41d7"
"""For inputs, outputs, keys and auth."""

TOKENS: set[str] = set()
"""Tokens of the web server that tests have made: `planted_token()` adds one. Kept, because tests of a module share some."""


def planted_token(token: str) -> str:
    TOKENS.add(token)
    return token


def secrets() -> tuple[str, ...]:
    return (PASSWORD, PAYLOAD, *TOKENS)


def assert_no_secret(text: str) -> None:
    for secret in secrets():
        assert secret not in text, f"a secret was printed: ...{text[max(0, text.index(secret) - 300) : text.index(secret) + 60]}"


@contextmanager
def watching_logs() -> Iterator[list[str]]:
    """Gives the records of ours that contain a secret, at every level. Handlers, caplog's as well, receive what they would
    receive without it: the levels of the loggers stay as they are."""
    found: list[str] = []
    is_enabled, handle = logging.Logger.isEnabledFor, logging.Logger.handle

    def is_enabled_or_scanned(logger: logging.Logger, level: int) -> bool:
        return _is_ours(logger) or is_enabled(logger, level)

    def scan_and_handle(logger: logging.Logger, record: logging.LogRecord) -> None:
        if _is_ours(logger):
            text = _FORMATTER.format(record) + repr(extra_fields(record))
            if any(secret in text for secret in secrets()):
                found.append(text)
            if not is_enabled(logger, record.levelno):
                return
        handle(logger, record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.Logger, "isEnabledFor", is_enabled_or_scanned)
        patch.setattr(logging.Logger, "handle", scan_and_handle)
        yield found


_FORMATTER = logging.Formatter("%(message)s")


def _is_ours(logger: logging.Logger) -> bool:
    return logger.name == "tenure" or logger.name.startswith("tenure.")
