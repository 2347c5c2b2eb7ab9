"""A virtual environment for each peer, made when it is first needed and kept."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.peers.registry import Candidate
from benchmarks.workers import ROOT

FOLDER = ROOT / ".bench-venvs"
PATIENCE = 600.0  # seconds to install


class NotAvailableError(Exception):
    """A peer that cannot be measured here, with the reason."""


def python_of(candidate: Candidate, folder: Path = FOLDER) -> Path:
    """The interpreter that runs it. Raises NotAvailableError."""
    if not candidate.requirements:
        return Path(sys.executable)
    home, wanted = folder / candidate.name, "\n".join(candidate.requirements)
    python, installed = home / "bin" / "python", home / "installed.txt"
    if not installed.exists() or installed.read_text() != wanted:
        _install(home, python, candidate.requirements)
        installed.write_text(wanted)
    return python


def _install(home: Path, python: Path, requirements: tuple[str, ...]) -> None:
    print(f"installing {', '.join(requirements)} into {home}", file=sys.stderr, flush=True)
    venv.create(home, with_pip=True, clear=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if line.startswith("ERROR")] or error.stderr.splitlines()
        raise NotAvailableError(f"pip: {lines[-1] if lines else 'no message'}") from error
    except subprocess.TimeoutExpired as error:
        raise NotAvailableError(f"pip did not finish in {PATIENCE:.0f} s") from error
