"""Code of earlier commits, with the schema that it had: unpacked from the history of this checkout."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tenure.store.migration_files import MIGRATIONS, newest_version
from tests.upgrades.code_version import CodeVersion

ROOT = Path(__file__).parents[2]
FOLDER = "src/tenure/store/migrations"
CHANGED = 0.02
"""The share of lines of a migration by which an earlier state of it may differ from the released one."""


@dataclass(frozen=True)
class EarlierState:
    """A commit before one that added a migration."""

    commit: str
    version: int
    """Of its newest migration."""


def earlier_states() -> list[EarlierState]:
    """Those whose migrations are the first ones of ours, newest first. Empty: this checkout has no history."""
    found: dict[int, EarlierState] = {}
    for commit in _git("log", "--format=%H", "--diff-filter=A", "--", FOLDER).split():
        before = _git("rev-parse", "--verify", "--quiet", f"{commit}~1").strip()
        names = _git("ls-tree", "--name-only", before, f"{FOLDER}/").split() if before else []
        version = max((int(Path(name).name[:4]) for name in names), default=newest_version())
        if version < newest_version() and version not in found and _is_part_of_ours(before, names, version):
            found[version] = EarlierState(before, version)
    return [found[version] for version in sorted(found, reverse=True)]


def _is_part_of_ours(commit: str, names: list[str], version: int) -> bool:
    """The same files, with almost the same text: a migration may have been changed before its first release."""
    released = dict(_released(version))
    if {Path(name).name for name in names} != released.keys():
        return False
    return all(_is_close(_git("show", f"{commit}:{name}"), released[Path(name).name]) for name in names)


def _is_close(earlier: str, released: str) -> bool:
    """Lines may have been added, and a few have been changed or removed."""
    before = set(earlier.splitlines())
    return len(before - set(released.splitlines())) <= CHANGED * len(before)


def earlier_code(state: EarlierState, folder: Path) -> CodeVersion:
    """With the migrations as they were released: databases have those."""
    packed = subprocess.run(["git", "archive", state.commit, "src"], cwd=ROOT, capture_output=True, check=True, timeout=60).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    for name, text in _released(state.version):
        (folder / FOLDER / name).write_text(text, "utf-8")
    return CodeVersion(state.version, folder / "src")


def _released(version: int) -> Iterator[tuple[str, str]]:
    for file in Path(str(MIGRATIONS)).glob("*.sql"):
        if int(re.match(r"\d+", file.name)[0]) <= version:
            yield file.name, file.read_text("utf-8")


def _git(*words: str) -> str:
    """Empty without git, without history, or without such a commit."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""
