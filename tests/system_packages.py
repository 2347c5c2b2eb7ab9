"""Programs that tests need and pip does not have. As root on Debian, as in CI, they are installed if they are missing."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenure.chaos.faults.clocks import faketime
from tenure.chaos.pooler import PGBOUNCER


def install(package: str) -> bool:
    """Whether it was installed. False: this account or system cannot install it."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    print(f"{package} is missing: apt-get install {package}", file=sys.stderr, flush=True)  # noqa: T201
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with alone("apt-get"):  # which fails while another one runs
        for command in (["update"], ["install", "-y", "--no-install-recommends", package]):
            done = subprocess.run(
                ["apt-get", "-q", *command], env=environment, capture_output=True, text=True, timeout=600, check=False
            )
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr, flush=True)  # noqa: T201
    return done.returncode == 0


def install_missing() -> None:
    """Tests of poolers, of wrong clocks and of alert rules are skipped without these."""
    found = {"pgbouncer": PGBOUNCER, "libfaketime": faketime(), "prometheus": shutil.which("promtool")}
    if None in found.values():
        with alone("system-packages"):
            for package, place in found.items():
                if place is None:
                    install(package)


def chromium() -> str:
    with alone("chromium"):
        found = shutil.which("chromium")
        if found is None and install("chromium"):
            found = shutil.which("chromium")
    assert found, "these tests need Chromium as `chromium`: install it"
    return found


def nginx() -> str | None:
    with alone("nginx"):
        found = shutil.which("nginx")
        if found is None and install("nginx-light"):
            found = shutil.which("nginx")
    return found


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Test processes wait for each other."""
    with (Path(tempfile.gettempdir()) / f"tenure-{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
