"""One version of Tenure's code, as processes of a test run it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tenure.store.migration_files import newest_version
from tests.processes import run_process


@dataclass(frozen=True)
class CodeVersion:
    schema_version: int
    """Of its newest migration."""
    source: Path | None = None
    """The folder with its package. None: the installed code."""

    @property
    def environment(self) -> dict[str, str]:
        """For processes that are to run it: its folder comes before that of the installed code."""
        return {"PYTHONPATH": str(self.source)} if self.source else {}

    def tenure(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_process([sys.executable, "-m", "tenure", *words], env={**os.environ, **self.environment}, timeout=120)


def installed_code() -> CodeVersion:
    return CodeVersion(newest_version())
