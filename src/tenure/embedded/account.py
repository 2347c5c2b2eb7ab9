"""As whom the server runs. PostgreSQL refuses to run as root; then it runs as an account that exists already."""

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
        """Gives one of our own, fresh folders to this account, closed to all others."""
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
        """Starts a program as this account, in its own session, away from our working folder and PG* settings."""
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
        """Whether the program ended well, and what it said."""
        try:
            process = self.popen(command, subprocess.PIPE)
        except OSError as error:
            return False, str(error)
        said = process.communicate()[0].decode(errors="replace")
        return process.returncode == 0, said

    def can_enter(self, folder: Path) -> bool:
        """By trying: mode bits do not tell about ACLs, security modules and mounts."""
        return self.run(["/bin/sh", "-c", 'cd "$1"', "sh", folder])[0]


def server_account(data: Path) -> Account:
    """Ourselves; as root, whoever owns the data already, else the first unprivileged account there is."""
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
        f"PostgreSQL refuses to run as root and there is no account named {' or '.join(UNPRIVILEGED)}: "
        "run as a normal user, or set TENURE_DSN to a server that runs already"
    )


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)  # containers may run under a number that has no name


def _environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**inherited, "LC_ALL": "C"}
