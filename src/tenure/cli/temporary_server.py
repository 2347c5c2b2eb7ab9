"""A PostgreSQL in a temporary directory, for commands that must not use the database that is set."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenure.embedded import EmbeddedServer
from tenure.settings import Settings

SETTINGS_PREFIXES = ("TENURE_", "PG", "DATABASE_URL")


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
    if os.geteuid() == 0:
        folder.chmod(0o711)  # as root, the server runs under another account, which must be able to enter
    try:
        yield folder
    finally:
        _remove(folder)


@contextmanager
def temporary_server(folder: Path) -> Iterator[Settings]:
    """Not migrated. The environment names it, for this process and its children."""
    _clear_settings()
    with EmbeddedServer(folder / "server") as server:
        os.environ["TENURE_DSN"] = os.environ["TENURE_LISTEN_DSN"] = server.dsn
        os.environ["TENURE_SCHEMA"] = "tenure"
        yield Settings.load()


def _clear_settings() -> None:
    for name in list(os.environ):
        if name.startswith(SETTINGS_PREFIXES) and name != "TENURE_PG_BIN":
            del os.environ[name]


def _remove(folder: Path) -> None:
    """Repeated, because the process that guards the server may need a moment to exit."""
    data = (folder / "server" / "pg").resolve()
    if not data.is_relative_to(folder):
        shutil.rmtree(data.parent, ignore_errors=True)
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)
