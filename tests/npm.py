"""Programs for the tests of the tracker: node and packages of npm. Nothing of it is in the repository."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.system_packages import alone

ROOT = Path(__file__).parents[1]
TRACKER = ROOT / "clients" / "js"

TYPES = ("typescript@5", "@types/react@19", "react@19", "vue@3")
PAGES = (*TYPES, "svelte@5", "esbuild@0.25", "esbuild-svelte@0.9", "react-dom@19", "playwright-core@1")


def node() -> str:
    found = shutil.which("node")
    assert found, "these tests need node 20 or newer: install it (Debian: apt-get install nodejs npm)"
    return found


def packages(*wanted: str) -> Path:
    """A folder with these packages in its node_modules. Made once, and kept for later runs."""
    name = hashlib.sha256(repr(wanted).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"tenure-npm-{os.getuid()}-{name}"
    with alone(folder.name):
        if not (folder / ".ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            (folder / "package.json").write_text('{"private": true, "type": "module"}')
            print(f"installing {' '.join(wanted)} into {folder}", file=sys.stderr)  # noqa: T201
            run(["npm", "install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error", *wanted], folder)
            (folder / ".ready").touch()
    return folder


def install_tracker(folder: Path) -> None:
    """As npm would install it: packed, so that a file that is missing in `files` is missing here."""
    run(["npm", "pack", "--silent", "--pack-destination", str(folder), str(TRACKER)], folder)
    [packed] = folder.glob("tenure-tracker-*.tgz")
    target = folder / "node_modules" / "tenure-tracker"
    target.mkdir(parents=True)
    run(["tar", "xzf", str(packed), "-C", str(target), "--strip-components=1"], folder)


def project(folder: Path, *wanted: str) -> Path:
    """A new project in this folder that uses the packages and the tracker."""
    (folder / "node_modules").mkdir(parents=True)
    for package in (packages(*wanted) / "node_modules").iterdir():
        (folder / "node_modules" / package.name).symlink_to(package)
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    install_tracker(folder)
    return folder


def run(command: list[str], folder: Path, *, timeout: float = 280, **env: str) -> str:
    """Fails with what it printed."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, (
        f"{' '.join(command[:4])} ended with {done.returncode}:\n{done.stdout[-8000:]}\n{done.stderr[-4000:]}"
    )
    return done.stdout
