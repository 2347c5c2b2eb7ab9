"""Finds the embedded server of a project, for programs that were given no DSN."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tenure.embedded.home import MARKER, Home
from tenure.embedded.postmaster import find_postmaster
from tenure.embedded.server import DATABASE, dsn_of

HOME_NAME = ".tenure"
NOTE_NAME = ".tenure-demo"
"""A file in a project's folder that names the home of a server elsewhere."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    dsn: str
    home: Path


def running_server(folder: Path) -> RunningServer | None:
    """The server that runs for this folder, or for the nearest one above it."""
    for place in _upwards(folder):
        for home in _homes(place):
            found = find_postmaster(Home(home).data)
            if found is not None and found.is_serving:
                return RunningServer(dsn_of(found, DATABASE), home)
    return None


def known_home(folder: Path) -> Path | None:
    """The nearest home at or above this folder, whether its server runs or not."""
    return next((place / HOME_NAME for place in _upwards(folder) if _is_ours(place / HOME_NAME)), None)


def home_of_sockets(sockets: Path, folder: Path) -> Path | None:
    """The home whose server has its socket in this folder while it runs."""
    homes = (place / HOME_NAME for place in _upwards(folder))
    return next((home for home in homes if _is_ours(home) and Home(home).data.parent / "run" == sockets.resolve()), None)


def note_home(folder: Path, home: Path) -> Path:
    """Lets programs in this folder find a server whose home is elsewhere. Gives the note, to be removed with the server."""
    note = folder / NOTE_NAME
    note.write_text(f"{home}\n")
    return note


def _upwards(folder: Path) -> Iterator[Path]:
    folder = folder.absolute()
    yield folder
    yield from folder.parents


def _homes(place: Path) -> Iterator[Path]:
    if _is_ours(place / HOME_NAME):
        yield place / HOME_NAME
    with suppress(OSError):
        note = place / NOTE_NAME
        if note.stat().st_uid == os.geteuid():
            home = Path(note.read_text("utf-8").strip())
            if _is_ours(home):
                yield home


def _is_ours(home: Path) -> bool:
    """Made by this account: another's server would get to see our jobs."""
    with suppress(OSError):
        return (home / MARKER).is_file() and home.stat().st_uid == os.geteuid()
    return False
