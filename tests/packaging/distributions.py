"""Wheel and sdist, built once per test run from the files that git tracks, and the Pythons that can install them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pythons() -> dict[int, str]:
    """Every CPython from 3.11 on, by its minor version: on the path, and where pyenv and uv keep them.

    Known by their names: every test process collects this, and starting each of them takes longer than most tests.
    """
    found: dict[int, str] = {}
    for pattern in (".pyenv/versions/3.*/bin/python3", ".local/share/uv/python/cpython-3.*/bin/python3"):
        for path in sorted(Path.home().glob(pattern)):
            found.setdefault(int(path.parts[-3].removeprefix("cpython-").split(".")[1]), str(path))
    for minor in range(11, 16):
        path = shutil.which(f"python3.{minor}")
        # A shim of pyenv is there for versions that are not active, too, and fails.
        if path and "shims" not in Path(path).parts:
            found.setdefault(minor, path)
    return {minor: found[minor] for minor in sorted(found) if minor >= 11}


PYTHONS = pythons()


def tracked(folder: Path) -> Path:
    """A copy of what git tracks: a file that only lies in the checkout must not make the difference."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def build(source: Path, target: Path, *kinds: str) -> list[Path]:
    """`kinds`: `--wheel`, `--sdist`."""
    run([sys.executable, "-m", "hatchling", "build", "-d", str(target), *(kind.replace("--", "-t=") for kind in kinds)], source)
    return sorted(target.iterdir())


def run(command: list[str], folder: Path, **environment: str) -> str:
    """Fails with what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("TENURE_", "PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        command, cwd=folder, env={**clean, **environment}, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, f"{command[:6]} ended with {done.returncode}:\n{done.stdout[-6000:]}\n{done.stderr[-4000:]}"
    return done.stdout
