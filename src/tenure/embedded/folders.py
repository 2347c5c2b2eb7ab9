"""The folders of data and sockets: in the home, unless the server's account or the system's limits prevent that."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tenure.embedded.account import Account
from tenure.embedded.home import Home, refuse_unmarked, write_marker
from tenure.embedded.relocate import make_trusted
from tenure.model.errors import ConfigError

log = logging.getLogger("tenure.embedded")

PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
SOCKET_PATH_LIMIT = 103 if sys.platform == "darwin" else 107  # bytes, set by the kernel
# Commas separate hosts in a DSN, and drivers differ in how they escape other characters.
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+")
TEMPORARY_PREFIX = "tenure-"


def settle_data(home: Home, account: Account) -> Path:
    """The path of the data folder, in a parent that the account can reach. The folder itself may not exist yet."""
    if home.data_link.is_symlink() and not home.data.parent.is_dir():
        log.warning("the data folder was removed; starting with an empty one", extra={"folder": str(home.data)})
        home.data_link.unlink()
    refuse_unmarked(home.data.parent)
    if home.data.exists() or home.data_link.is_symlink():
        _demand_reach(home.data.parent, account)
    elif not _can_live_in(home.folder, account):
        state = _state_folder(home, account)
        home.data_link.symlink_to(state / "pg")
        facts = {"account": account.name, "home": str(home.folder), "folder": str(home.data)}
        log.info("the server's account cannot reach the server's folder; the data is stored elsewhere", extra=facts)
    return home.data


def settle_sockets(data: Path, account: Account, previous: Path | None) -> Path:
    """A folder for the socket, which only the account (and root) can enter."""
    beside_data = data.parent / "run"
    if _fits(beside_data):
        beside_data.mkdir(exist_ok=True)
        account.own(beside_data)
        return beside_data
    if previous and is_temporary(previous) and _fits(previous) and account.owns(previous):
        return previous
    for parent in dict.fromkeys((tempfile.gettempdir(), "/tmp")):  # noqa: S108 - mkdtemp makes a private folder in it
        if _fits(Path(parent, TEMPORARY_PREFIX + "12345678")):
            made = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=parent))
            account.own(made)
            if account.is_ours or account.can_enter(made):
                return made
            made.rmdir()
    raise ConfigError(
        f"{beside_data} is too long for a socket (at most {SOCKET_PATH_LIMIT} bytes), and so is every temporary folder: "
        "choose a shorter home, or set TMPDIR to a short path"
    )


def clear_sockets(sockets: Path) -> None:
    """Removes the sockets of a crashed server. Only for a private folder while no server is running."""
    for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
        (sockets / name).unlink(missing_ok=True)


def remove_temporary_sockets(sockets: Path | None) -> None:
    if sockets and is_temporary(sockets):
        with suppress(OSError):
            sockets.rmdir()


def is_temporary(sockets: Path) -> bool:
    return sockets.name.startswith(TEMPORARY_PREFIX)


def remove_drafts(parent: Path, prefix: str) -> None:
    """Removes what killed attempts left. Only under the home's lock, when no attempt is running."""
    for draft in parent.glob(f"{prefix}*"):
        shutil.rmtree(draft, ignore_errors=True)


def _fits(sockets: Path) -> bool:
    path = sockets / SOCKET_NAME
    return len(os.fsencode(path)) <= SOCKET_PATH_LIMIT and PLAIN_PATH.fullmatch(str(path)) is not None


def _demand_reach(folder: Path, account: Account) -> None:
    if not account.is_ours and not account.can_enter(folder):
        raise ConfigError(
            f"account {account.name} owns the data in {folder} but can no longer reach it: "
            "make the folders above it traversable (chmod o+x), or choose another home"
        )


def _can_live_in(folder: Path, account: Account) -> bool:
    return account.is_ours or account.can_enter(folder)


def _state_folder(home: Home, account: Account) -> Path:
    for parent in _state_parents():
        # With a random suffix: a home that was removed and created again must not find its old data.
        prefix = hashlib.sha256(os.fsencode(home.folder)).hexdigest()[:12] + "-"
        state = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        state.chmod(0o711)
        if _can_live_in(state, account):
            write_marker(state)
            return state
        state.rmdir()
    raise ConfigError(
        f"account {account.name} can reach neither {home.folder} nor a folder for its data: "
        "choose a home that this account can reach, or run as a normal user"
    )


def _state_parents() -> Iterator[Path]:
    lasting = Path("/var/lib/tenure")
    if make_trusted(lasting):
        yield lasting
    yield Path(tempfile.gettempdir())
