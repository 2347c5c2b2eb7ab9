"""Wheel and sdist, built once per test run from the files that git tracks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


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
