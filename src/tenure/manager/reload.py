"""Detects changes of the code, for `tenure dev`."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

log = logging.getLogger("tenure")

CHECK_EVERY = 0.5
SKIPPED = {"__pycache__", "node_modules", "site-packages"}


async def watch_files(folder: Path, changed: Callable[[], None]) -> None:
    """Compares the modification times of all Python files and `tenure.toml` below `folder`, except in hidden folders and
    virtual environments."""
    known = dict(_times(folder))
    while True:
        await asyncio.sleep(CHECK_EVERY)
        now = dict(_times(folder))
        if now != known:
            names = [path for path in now.keys() | known.keys() if now.get(path) != known.get(path)]
            log.info("code changed; replacing worker processes", extra={"file": Path(min(names)).name})
            known = now
            changed()


def _times(folder: Path) -> Iterator[tuple[str, int]]:
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in SKIPPED]
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        for name in names:
            if name.endswith(".py") or name == "tenure.toml":
                path = f"{where}/{name}"
                try:
                    yield path, os.stat(path).st_mtime_ns  # noqa: PTH116 - thousands of files, twice a second
                except FileNotFoundError:
                    continue
