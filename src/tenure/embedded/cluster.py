"""The data folder: made whole or not at all, never over something else."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

from tenure.embedded.account import Account
from tenure.embedded.binaries import Binaries
from tenure.embedded.home import refuse_unmarked, write_marker
from tenure.embedded.place import remove_drafts
from tenure.model.errors import ConfigError

log = logging.getLogger("tenure.embedded")

USER = "tenure"
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
        raise ConfigError(f"{data} is damaged (it has no PG_VERSION): restore it, or remove its home to start anew")
    if found != str(binaries.major):
        raise ConfigError(
            f"{data} was made by PostgreSQL {found}, but the binaries in {binaries.folder} are {binaries.version}: "
            f"set TENURE_PG_BIN to the bin folder of a PostgreSQL {found}, or convert the data with pg_upgrade, "
            "or remove the home if the data may be lost"
        )


def _initialise(data: Path, binaries: Binaries, account: Account, *, durable: bool) -> None:
    draft = Path(tempfile.mkdtemp(prefix=DRAFT_PREFIX, dir=data.parent))
    account.own(draft)
    command: list[str | Path] = [binaries.program("initdb"), "-D", draft, "-U", USER, "-E", "UTF8", "--no-locale"]
    command += ["-A", "trust", *([] if durable else ["--no-sync"])]
    succeeded, said = account.run(command)
    if not succeeded:
        remove_drafts(data.parent, DRAFT_PREFIX)
        raise ConfigError(
            f"initdb failed in {draft}:\n{said.strip()}\nMend what it names, or set TENURE_PG_BIN to another PostgreSQL"
        )
    write_marker(draft)
    draft.rename(data)
    # Else a power failure could undo the rename after data was committed, and the next start would tidy it away.
    _sync_folder(data.parent)
    log.debug("made a PostgreSQL %s data folder in %s", binaries.version, data)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
