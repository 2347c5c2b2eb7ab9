"""Copies the programs to a folder where the server's account can run them.

Only as root, and only if that account cannot run them where they are (for example in a virtual environment under /root).
The copies belong to root and only root can write there, so no other account can replace a program.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tenure.embedded.account import Account
from tenure.embedded.binaries import Binaries
from tenure.model.errors import ConfigError

log = logging.getLogger("tenure.embedded")

NEEDED_FOLDERS = ("bin", "lib", "share")


def reachable_binaries(binaries: Binaries, account: Account) -> Binaries:
    if account.is_ours or _runs(binaries, account):
        return binaries
    if all((binaries.folder.parent / name).is_dir() for name in NEEDED_FOLDERS):
        for cache in cache_folders():
            copy = _copied(binaries, cache)
            if _runs(copy, account):
                facts = {"account": account.name, "programs": str(binaries.folder), "copy": str(copy.folder)}
                log.info("the server's account cannot run the programs; using a copy", extra=facts)
                return copy
    raise ConfigError(
        f"account {account.name} cannot run the programs in {binaries.folder} and no usable copy could be made: "
        "run as a normal user, or set TENURE_PG_BIN to a folder that this account can reach"
    )


def cache_folders() -> Iterator[Path]:
    for cache in (Path("/var/cache/tenure"), Path(tempfile.gettempdir(), "tenure-postgres")):
        if make_trusted(cache):
            yield cache


def make_trusted(folder: Path) -> bool:
    """Creates the folder unless it exists. False if an account other than root could change its content or replace it."""
    try:
        if not folder.parent.is_dir() or not _keeps_entries_safe(folder.parent):
            return False
        if not os.path.lexists(folder):
            folder.mkdir()
            folder.chmod(0o755)
    except FileExistsError:
        pass  # another process was faster
    except OSError:
        return False
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and not found.st_mode & 0o022


def _keeps_entries_safe(parent: Path) -> bool:
    found = parent.stat()
    return found.st_uid == 0 and (not found.st_mode & 0o022 or bool(found.st_mode & stat.S_ISVTX))


def _runs(binaries: Binaries, account: Account) -> bool:
    return all(account.run([binaries.program(name), "--version"])[0] for name in ("postgres", "initdb"))


def _copied(binaries: Binaries, cache: Path) -> Binaries:
    install = binaries.folder.parent
    target = cache / _key(binaries)
    if not target.is_dir():
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=cache))
        try:
            _copy_install(install, draft)
            draft.rename(target)
        except OSError as error:
            # Another process was faster and its copy is equal, or there is no space here.
            log.debug("programs were not copied", extra={"programs": str(install), "cache": str(cache), "error": str(error)})
            shutil.rmtree(draft, ignore_errors=True)
    return Binaries(target / install.parent.name / install.name / "bin", binaries.version)


def _key(binaries: Binaries) -> str:
    program = binaries.program("postgres")
    found = program.stat()
    facts = f"{program.resolve()}\0{binaries.version}\0{found.st_mtime_ns}\0{found.st_size}"
    return f"{binaries.version}-{hashlib.sha256(os.fsencode(facts)).hexdigest()[:16]}"


def _copy_install(install: Path, draft: Path) -> None:
    package = install.parent
    for name in NEEDED_FOLDERS:
        shutil.copytree(install / name, draft / package.name / install.name / name, symlinks=True)
    # Wheels keep shared libraries beside the package (Linux) or in it (macOS); the programs find them by relative path.
    for libraries in (package.parent / f"{package.name}.libs", package / ".dylibs"):
        if libraries.is_dir():
            shutil.copytree(libraries, draft / libraries.relative_to(package.parent), symlinks=True)
    _open_for_reading(draft)


def _open_for_reading(tree: Path) -> None:
    for folder, _, files in os.walk(tree):
        Path(folder).chmod(0o755)
        for file in (Path(folder, name) for name in files):
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644)
