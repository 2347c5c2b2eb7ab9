"""Finds the embedded server of a project, for programs without a DSN."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tenure.embedded.home import MARKER, Home
from tenure.embedded.postmaster import find_postmaster

HOME_NAME = ".tenure"
NOTE_NAME = ".tenure-demo"
"""A file in a project's folder that contains the path of a server's home elsewhere."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    dsn: str
    home: Path


def running_server(folder: Path) -> RunningServer | None:
    """The server that runs for this folder, or for the nearest folder above it."""
    for parent in _upwards(folder):
        for home in _homes(parent):
            found = find_postmaster(Home(home).data)
            if found is not None and found.is_serving:
                return RunningServer(found.dsn(), home)
    return None


def known_home(folder: Path) -> Path | None:
    """The nearest home in this folder or above, whether its server runs or not."""
    return next((parent / HOME_NAME for parent in _upwards(folder) if _is_ours(parent / HOME_NAME)), None)


def home_of_sockets(sockets: Path, folder: Path) -> Path | None:
    """The home whose server has its socket in this folder while it runs."""
    homes = (parent / HOME_NAME for parent in _upwards(folder))
    return next((home for home in homes if _is_ours(home) and Home(home).data.parent / "run" == sockets.resolve()), None)


def note_home(folder: Path, home: Path) -> Path:
    """Lets programs in this folder find a server whose home is elsewhere. Returns the file, which is removed with the server."""
    note = folder / NOTE_NAME
    note.write_text(f"{home}\n")
    return note


def _upwards(folder: Path) -> Iterator[Path]:
    folder = folder.absolute()
    yield folder
    yield from folder.parents


def _homes(folder: Path) -> Iterator[Path]:
    if _is_ours(folder / HOME_NAME):
        yield folder / HOME_NAME
    with suppress(OSError):
        note = folder / NOTE_NAME
        if note.stat().st_uid == os.geteuid():
            home = Path(note.read_text("utf-8").strip())
            if _is_ours(home):
                yield home


def _is_ours(home: Path) -> bool:
    """Created by this account: the server of another account would receive the jobs."""
    with suppress(OSError):
        return (home / MARKER).is_file() and home.stat().st_uid == os.geteuid()
    return False
