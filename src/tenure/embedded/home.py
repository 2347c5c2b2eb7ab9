"""The folder that contains the files of one embedded server, or links to them."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tenure.embedded.holders import Holders
from tenure.model.errors import ConfigError

MARKER = "TENURE_EMBEDDED"
MARKER_TEXT = "This folder belongs to an embedded PostgreSQL of Tenure. Remove the whole folder or nothing of it.\n"
LOCK_PATIENCE = 90.0  # seconds; longer than a start with crash recovery may take under the lock
LARGEST_LOG = 10_000_000  # bytes; then it is renamed, so there are at most two
LOG_TAIL = 20  # lines


class Home:
    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().resolve()
        self.holders = Holders(self.folder / "holders.json")
        self.log = self.folder / "server.log"
        self.guardian_lock = self.folder / "guardian.lock"

    @property
    def data_link(self) -> Path:
        """The data folder, or a link to it if it is stored elsewhere."""
        return self.folder / "pg"

    @property
    def data(self) -> Path:
        return self.data_link.resolve()

    def make(self) -> None:
        """Creates and marks the folder. Raises `ConfigError` if it belongs to another user or program."""
        try:
            self._make_folder()
            self._refuse_foreign()
            # The marker is written first, so that the next start recognizes the folder of an interrupted one.
            write_marker(self.folder)
            ignored = self.folder / ".gitignore"
            if not ignored.exists():
                ignored.write_text("*\n")
        except OSError as error:
            raise ConfigError(f"cannot use {self.folder}: {error}. Choose another home for the server") from error

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held around every decision to start, stop, join or leave."""
        with open_lock(self.folder / "tenure.lock") as descriptor:
            deadline = time.monotonic() + LOCK_PATIENCE
            while not try_lock(descriptor):
                if time.monotonic() >= deadline:
                    raise ConfigError(
                        f"another process has held {self.folder / 'tenure.lock'} for {LOCK_PATIENCE:.0f} s: "
                        "find the suspended process that uses this home, and resume or end it"
                    )
                time.sleep(0.02)
            yield

    def open_log(self) -> BinaryIO:
        return os.fdopen(os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")

    def rotated_log_size(self) -> int:
        if self.log.exists() and self.log.stat().st_size > LARGEST_LOG:
            self.log.replace(self.log.with_suffix(".log.1"))
        return self.log.stat().st_size if self.log.exists() else 0

    def log_since(self, size: int) -> str:
        with self.log.open("rb") as stream:
            stream.seek(size)
            lines = stream.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL:])

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True)
        except FileExistsError:
            return
        # As root: the server's account must be able to traverse the folder.
        self.folder.chmod(0o711 if os.geteuid() == 0 else 0o700)

    def _refuse_foreign(self) -> None:
        if self.folder.stat().st_uid != os.geteuid():
            raise ConfigError(
                f"{self.folder} belongs to another user (uid {self.folder.stat().st_uid}): "
                "run as that user, or choose another home"
            )
        refuse_unmarked(self.folder)


def write_marker(folder: Path) -> None:
    with suppress(FileExistsError):
        write_new(folder / MARKER, MARKER_TEXT)


def write_new(file: Path, text: str) -> None:
    """Follows no link: as root this writes into a folder of the server's account, which is less trusted."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as stream:
        stream.write(text)


def refuse_unmarked(folder: Path) -> None:
    """A folder belongs to Tenure if it contains the marker; an empty one may be used."""
    # In this order: the marker is always written first, so a process that sees another file of Tenure also finds the marker.
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARKER).is_file():
        raise ConfigError(
            f"{folder} is not empty and was not made by Tenure (it has no file {MARKER}): "
            "choose an empty or a new folder; nothing in it was changed"
        )


@contextmanager
def open_lock(file: Path) -> Iterator[int]:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        # Closing is not enough: a child that another thread forked meanwhile shares the lock until it ends.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
