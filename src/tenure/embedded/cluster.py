"""The data folder: created completely or not at all, and never over existing files."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

from tenure.embedded.account import Account
from tenure.embedded.binaries import Binaries
from tenure.embedded.folders import remove_drafts
from tenure.embedded.home import refuse_unmarked, write_marker
from tenure.embedded.postmaster import USER
from tenure.model.errors import ConfigError

log = logging.getLogger("tenure.embedded")

DRAFT_PREFIX = "pg.new-"


def ensure_cluster(data: Path, binaries: Binaries, account: Account, *, durable: bool) -> None:
    refuse_unmarked(data)
    remove_drafts(data.parent, DRAFT_PREFIX)
    if data.is_dir() and any(data.iterdir()):
        _refuse_other_major(data, binaries)
    else:
        _initialise(data, binaries, account, durable=durable)


def version_of(data: Path) -> str | None:
    try:
        return (data / "PG_VERSION").read_text().strip()
    except OSError:
        return None


def _refuse_other_major(data: Path, binaries: Binaries) -> None:
    found = version_of(data)
    if found is None:
        raise ConfigError(f"{data} is damaged (it has no PG_VERSION): restore it, or remove its home to start with an empty one")
    if found != str(binaries.major):
        raise ConfigError(
            f"{data} was made by PostgreSQL {found}, but the programs in {binaries.folder} are {binaries.version}: "
            f"set TENURE_PG_BIN to the bin folder of a PostgreSQL {found}, or convert the data with pg_upgrade, "
            "or remove the home if the data may be lost"
        )


def _initialise(data: Path, binaries: Binaries, account: Account, *, durable: bool) -> None:
    draft = Path(tempfile.mkdtemp(prefix=DRAFT_PREFIX, dir=data.parent))
    account.own(draft)
    command: list[str | Path] = [binaries.program("initdb"), "-D", draft, "-U", USER, "-E", "UTF8", "--no-locale"]
    command += ["-A", "trust", *([] if durable else ["--no-sync"])]
    succeeded, output = account.run(command)
    if not succeeded:
        remove_drafts(data.parent, DRAFT_PREFIX)
        raise ConfigError(
            f"initdb failed in {draft}:\n{output.strip()}\nFix the cause, or set TENURE_PG_BIN to another PostgreSQL"
        )
    write_marker(draft)
    draft.rename(data)
    # Otherwise a power failure could undo the rename after data was committed, and the next start would delete the data.
    _sync_folder(data.parent)
    log.debug("PostgreSQL data folder created", extra={"version": binaries.version, "folder": str(data)})


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
