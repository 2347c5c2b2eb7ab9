"""Migrations as later versions of Tenure would bring them: in a folder of the test's own, after the real ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.store import migration_files

Later = Callable[..., list[str]]

NEWEST = migration_files.newest_version()


def later_label(name: str, ahead: int = 1) -> str:
    """The label of a migration that is this many versions ahead of the newest one."""
    return f"{NEWEST + ahead:04d}_{name}"


TWO_PHASES = {
    later_label("pre_late"): "create table tenure.late (id bigserial primary key, what text);"
    " alter table tenure.jobs add column late text; create index jobs_late on tenure.jobs (id) where late is not null;",
    later_label("post_late"): "drop index tenure.jobs_late;",
}


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Later:
    """Adds files; those of `TWO_PHASES` if none are given. Returns the labels of all migrations, in order."""

    def add(files: dict[str, str] = TWO_PHASES) -> list[str]:
        folder = tmp_path / f"migrations_{len(list(tmp_path.iterdir()))}"
        shutil.copytree(str(migration_files.MIGRATIONS), folder)
        for label, text in files.items():
            (folder / f"{label}.sql").write_text(text)
        monkeypatch.setattr(migration_files, "MIGRATIONS", folder)
        return [migration.label for migration in migration_files.migrations()]

    return add
