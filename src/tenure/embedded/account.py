"""The account that the server runs as. PostgreSQL does not run as root; then an existing unprivileged account is used."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tenure.model.errors import ConfigError

UNPRIVILEGED = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int

    @property
    def is_ours(self) -> bool:
        return self.uid == os.geteuid()

    def own(self, folder: Path) -> None:
        """Makes this account the owner of a new folder, closed to all others."""
        if not self.is_ours:
            os.chown(folder, self.uid, self.gid, follow_symlinks=False)
        folder.chmod(0o700)

    def owns(self, folder: Path) -> bool:
        try:
            found = folder.lstat()
        except OSError:
            return False
        return folder.is_dir() and not folder.is_symlink() and found.st_uid == self.uid and not found.st_mode & 0o077

    def popen(self, command: Sequence[str | Path], output: int) -> subprocess.Popen[bytes]:
        """Starts a program as this account, in its own session, without the caller's working folder and PG* variables."""
        return subprocess.Popen(
            command,
            cwd="/",
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=0o077,
            user=None if self.is_ours else self.uid,
            group=None if self.is_ours else self.gid,
            extra_groups=None if self.is_ours else [],
        )

    def run(self, command: Sequence[str | Path]) -> tuple[bool, str]:
        """Whether the program succeeded, and its output."""
        try:
            process = self.popen(command, subprocess.PIPE)
        except OSError as error:
            return False, str(error)
        output = process.communicate()[0].decode(errors="replace")
        return process.returncode == 0, output

    def can_enter(self, folder: Path) -> bool:
        """By trying: mode bits do not include ACLs, security modules and mounts."""
        return self.run(["/bin/sh", "-c", 'cd "$1"', "sh", folder])[0]


def server_account(data: Path) -> Account:
    """The current account; as root, the owner of existing data, else the first unprivileged account that exists."""
    if os.geteuid() != 0:
        return Account(_name_of(os.geteuid()), os.geteuid(), os.getegid())
    if data.is_dir() and data.stat().st_uid != 0:
        return Account(_name_of(data.stat().st_uid), data.stat().st_uid, data.stat().st_gid)
    for name in UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise ConfigError(
        f"PostgreSQL does not run as root, and there is no account named {' or '.join(UNPRIVILEGED)}: "
        "run as a normal user, or set TENURE_DSN to a running server"
    )


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)  # containers may run as a uid without a name


def _environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**inherited, "LC_ALL": "C"}
